// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct ExtendedProtocolFileTests {
    struct File: Decodable {
        struct Field: Decodable {
            var name: String
            var bytes: Int?
        }

        struct Layout: Decodable {
            var layout: [Field]
            var flags: [String: UInt8]
            var version: UInt8?
        }

        struct Keys: Decodable {
            var context: String
            var masterBytes: Int
            var subkeys: [String: Int]
        }

        struct Sealing: Decodable {
            var directions: [String: UInt8]
        }

        struct Extended: Decodable {
            var hello: Layout
            var keys: Keys
            var sealing: Sealing
            var openingMessage: [Field]
            var frame: Layout
            var keyAgreement: [String: String]
            var requestIdKey: String
            var limits: [String: Int]
            var milliseconds: [String: Int]
        }

        var profiles: [String: String]
        var extended: Extended
    }

    let extended: File.Extended

    init() throws {
        let file = try SharedFiles.decode(File.self, "protocol.json")
        #expect(file.profiles == ["basic": "defined", "extended": "defined"])
        extended = file.extended
    }

    @Test func `the limits are the file's, all of them`() {
        #expect(
            extended.limits == [
                "envelopeBytes": ProtocolLimits.extendedEnvelopeBytes,
                "envelopeAtLeastBytes": ProtocolLimits.extendedEnvelopeAtLeast,
                "helloBytes": ProtocolLimits.helloBytes,
                "frameHeaderBytes": ProtocolLimits.frameHeader,
                "frameToHostBytes": ProtocolLimits.frameToHost,
                "frameToHostUnknownMTUBytes": ProtocolLimits.frameToHostUnknownMTU,
                "frameToClientAtLeastBytes": ProtocolLimits.frameToClientAtLeast,
                "messageOverheadBytes": ProtocolLimits.messageOverhead,
                "plaintextBytes": ProtocolLimits.envelopeBytes,
                "passcodeAtLeastBytes": ProtocolLimits.passcodeBytes.lowerBound,
                "passcodeAtMostBytes": ProtocolLimits.passcodeBytes.upperBound,
                "randomPasscodeDigits": ProtocolLimits.randomPasscodeDigits,
                "hellosPerDevice": ProtocolLimits.hellosPerDevice,
                "hellos": ProtocolLimits.hellos,
                "assembliesPerDevice": ProtocolLimits.assembliesPerDevice,
                "assemblies": ProtocolLimits.assemblies,
                "failedAttempts": ProtocolLimits.failedAttempts,
                "devicesWithFailures": ProtocolLimits.devicesWithFailures,
                "attemptsPerDevice": ProtocolLimits.attemptsPerPeer,
                "attempts": ProtocolLimits.attempts,
                "messagesAtOnce": ProtocolLimits.messagesAtOnce,
                "plaintextRejects": ProtocolLimits.plaintextRejects,
                "rememberedAnswers": ProtocolLimits.rememberedAnswers,
                "rememberedAnswerBytes": ProtocolLimits.rememberedAnswerBytes,
                "helloReads": ProtocolLimits.helloReads,
                "passcodeExposures": ProtocolLimits.passcodeExposures,
            ])
    }

    @Test func `the times are the file's, all of them`() {
        let times: [String: Duration] = [
            "hello": ProtocolLimits.hello,
            "betweenFrames": ProtocolLimits.betweenFrames,
            "message": ProtocolLimits.message,
            "failedAttemptRefill": ProtocolLimits.failedAttemptRefill,
            "receipt": ProtocolLimits.receipt,
            "receiptWrite": ProtocolLimits.receiptWrite,
            "passcodeNeeded": ProtocolLimits.passcodeNeeded,
            "rememberedAnswer": ProtocolLimits.rememberedAnswer,
        ]
        #expect(extended.milliseconds.mapValues { Duration.milliseconds($0) } == times)
    }

    @Test func `layouts, flags and names are the file's`() {
        #expect(extended.hello.version == Hello.version)
        #expect(extended.hello.layout.compactMap(\.bytes).reduce(0, +) == ProtocolLimits.helloBytes)
        #expect(
            extended.hello.flags == [
                "passcodeNeeded": Hello.Flags.passcodeNeeded.rawValue,
                "basicRefused": Hello.Flags.basicRefused.rawValue,
            ])
        #expect(extended.openingMessage.compactMap(\.bytes).reduce(0, +) == OpeningMessage.shareEnd)
        #expect(extended.frame.layout.compactMap(\.bytes).reduce(0, +) == ProtocolLimits.frameHeader)
        let frame = Frame(
            moreFollows: true, isPlaintext: false, tag: FrameTag(high: 1, low: 2), sequence: 3, data: [4])
        #expect(frame.bytes.first == extended.frame.flags["moreFollows"])
        var plain = frame
        (plain.moreFollows, plain.isPlaintext) = (false, true)
        #expect(plain.bytes.first == extended.frame.flags["plaintext"])
        #expect(extended.keys.context == "\(SealedChannel.keyContext)")
        #expect(extended.keys.masterBytes == 32 && extended.keys.subkeys == ["toHost": 1, "toClient": 2])
        #expect(
            extended.sealing.directions == [
                "toHost": MessageDirection.toHost.rawValue, "toClient": MessageDirection.toClient.rawValue,
            ])
        #expect(extended.requestIdKey == JoinRequestID.key)
        #expect(
            CPace.channel.dropFirst().starts(with: Array((extended.keyAgreement["channelIdentifierName"] ?? "").utf8)))
    }
}
