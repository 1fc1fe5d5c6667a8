// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

private func bytes(_ hex: String) -> [UInt8] { Hexadecimal.bytes(hex) ?? [] }

private func secret(_ hex: String) -> SecretBytes { SecretBytes(copying: bytes(hex)) }

extension SecretBytes {
    fileprivate var copy: [UInt8] { withBytes { Array($0) } }
}

struct CPaceCase: Decodable, Sendable, CustomTestStringConvertible {
    struct Refused: Decodable, Sendable {
        var scalar: String
        var point: String
    }

    var name: String
    var agreement: [String: String]?
    var refused: Refused?

    var testDescription: String { name }
    static let all = (try? SharedFiles.decode(VectorFile<Self>.self, "vectors/cpace.json").cases) ?? []
}

struct KeyCase: Decodable, Sendable {
    var name: String
    var intermediateKey: String
    var toHost: String
    var toClient: String

    private enum CodingKeys: String, CodingKey {
        case name, toHost, toClient
        case intermediateKey = "ISK"
    }

    static let all = (try? SharedFiles.decode(VectorFile<Self>.self, "vectors/keys.json").cases) ?? []
}

struct SealingCase: Decodable, Sendable, CustomTestStringConvertible {
    struct Step: Decodable, Sendable {
        var plaintext: String?
        var sealed: String
    }

    var name: String
    var key: String
    var direction: String
    var tag: String
    var seal: [Step]?
    var open: [Step]?

    var testDescription: String { name }
    static let all = (try? SharedFiles.decode(VectorFile<Self>.self, "vectors/sealing.json").cases) ?? []

    /// The channel whose one half is the case's; the other half has a key of zeros.
    func channel(sealing: Bool) -> SealedChannel {
        let tagBytes = bytes(tag)
        let tag = FrameTag(high: tagBytes[0], low: tagBytes[1])
        let (toHost, other) = (direction == "toHost", SecretBytes(copying: [UInt8](repeating: 0, count: 32)))
        return SealedChannel(
            toHost == sealing ? .client : .host, toHost: toHost ? secret(key) : other,
            toClient: toHost ? other : secret(key), tag: tag)
    }
}

struct HelloCase: Decodable, Sendable, CustomTestStringConvertible {
    struct Accepted: Decodable, Sendable {
        var passcodeNeeded: Bool
        var basicRefused: Bool
        var maximumEnvelope: Int
        var sid: String
        var share: String
        var associatedData: String
    }

    struct Verdict: Decodable, Sendable {
        var accept: Accepted?
        var error: String?
    }

    var name: String
    var hex: String
    var verdict: Verdict

    var testDescription: String { name }
    static let all = (try? SharedFiles.decode(VectorFile<Self>.self, "vectors/hello.json").cases) ?? []
}

struct FrameCase: Decodable, Sendable, CustomTestStringConvertible {
    struct Write: Decodable, Sendable {
        var message: VectorMessage
        var frameBytes: Int
        var plaintext: Bool
        var frames: [String]
    }

    enum Verdict: Decodable, Sendable {
        case incomplete
        case complete(String, plaintext: Bool)
        case refused(String)

        private enum Keys: String, CodingKey { case complete, plaintext, refused }

        init(from decoder: any Decoder) throws {
            if let word = try? decoder.singleValueContainer().decode(String.self), word == "incomplete" {
                self = .incomplete
                return
            }
            let container = try decoder.container(keyedBy: Keys.self)
            if let why = try container.decodeIfPresent(String.self, forKey: .refused) {
                self = .refused(why)
            } else {
                self = .complete(
                    try container.decode(String.self, forKey: .complete),
                    plaintext: try container.decode(Bool.self, forKey: .plaintext))
            }
        }

        var assembly: FrameAssembly.Verdict? {
            switch self {
            case .incomplete: .incomplete
            case .complete(let hex, let plaintext): .complete(bytes(hex), isPlaintext: plaintext)
            case .refused(let why): FrameFault(rawValue: why).map { .refused($0) }
            }
        }
    }

    struct Step: Decodable, Sendable {
        var frame: VectorMessage
        var verdict: Verdict
    }

    struct Read: Decodable, Sendable {
        var sealedLimit: Int
        var plaintextLimit: Int?
        var frames: [Step]
    }

    var name: String
    var tag: String
    var write: Write?
    var read: Read?

    var testDescription: String { name }
    static let all = (try? SharedFiles.decode(VectorFile<Self>.self, "vectors/frames.json").cases) ?? []
}

struct ExchangeCase: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var passcode: String?
    var mtu: Int?
    var hello: String
    var yb: String
    var ya: String
    var request: String
    var clientFrames: [String]
    var hostFrameBytes: Int
    var hostFrames: [String]
    var answer: String?
    var hint: String?
    var receipt: [String]

    var testDescription: String { name }
    static let all = (try? SharedFiles.decode(VectorFile<Self>.self, "vectors/exchange.json").cases) ?? []
}

@Suite struct ExtendedVectorTests {
    @Test func `every file is there, of format 1, its names unique`() throws {
        let sizes = [CPaceCase.all.count, KeyCase.all.count, SealingCase.all.count, HelloCase.all.count]
        #expect(sizes.allSatisfy { $0 > 4 } && FrameCase.all.count > 30 && ExchangeCase.all.count >= 6)
        for name in ["cpace", "keys", "sealing", "hello", "frames", "exchange"] {
            let file = try SharedFiles.decode(VectorFile<NameOnly>.self, "vectors/\(name).json")
            #expect(file.format == 1)
            #expect(Set(file.cases.map(\.name)).count == file.cases.count)
        }
    }

    struct NameOnly: Decodable, Sendable { var name: String }

    @Test(arguments: CPaceCase.all) func `the key agreement gives every value on the way`(_ test: CPaceCase) throws {
        if let refused = test.refused {
            #expect(Sodium.multiply(secret(refused.scalar), bytes(refused.point)) == nil)
            return
        }
        let v = try #require(test.agreement).mapValues(bytes)
        func value(_ name: String) throws -> [UInt8] { try #require(v[name]) }
        let prs = SecretBytes(copying: try value("prs"))
        let (ci, sid) = (try value("ci"), try value("sid"))
        #expect(CPace.generatorString(passcode: prs, channel: ci, sid: sid).copy == v["generatorString"])
        let generator = try #require(CPace.generator(passcode: prs, channel: ci, sid: sid))
        #expect(generator == v["generator"])
        let client = try #require(CPace.share(SecretBytes(copying: try value("ya")), generator: generator))
        let host = try #require(CPace.share(SecretBytes(copying: try value("yb")), generator: generator))
        #expect(client.point == v["Ya"])
        #expect(host.point == v["Yb"])
        let transcript = CPace.Transcript(
            ya: client.point, ada: try value("ADa"), yb: host.point, adb: try value("ADb"))
        for element in [CPace.sharedElement(client, with: host.point), CPace.sharedElement(host, with: client.point)] {
            let element = try #require(element)
            #expect(element.copy == v["K"])
            #expect(CPace.intermediateKey(sid: sid, element: element, transcript).copy == v["ISK"])
        }
        #expect(CPace.sessionIDOutput(transcript) == v["sidOutput"])
        if test.name.hasPrefix("our channel") { #expect(ci == CPace.channel) }
    }

    @Test func `the keys of both directions`() {
        for test in KeyCase.all {
            #expect(
                Sodium.subkey(1, context: SealedChannel.keyContext, of: secret(test.intermediateKey))?.copy
                    == bytes(test.toHost))
            #expect(
                Sodium.subkey(2, context: SealedChannel.keyContext, of: secret(test.intermediateKey))?.copy
                    == bytes(test.toClient))
        }
    }

    @Test(arguments: SealingCase.all) func `seals are written and opened as they stand`(_ test: SealingCase) {
        if let steps = test.seal {
            let channel = test.channel(sealing: true)
            for (number, step) in steps.enumerated() {
                let sealed = channel.sealer.seal(bytes(step.plaintext ?? ""))
                #expect(sealed?.bytes == bytes(step.sealed))
                #expect(sealed?.number == UInt64(number))
            }
        }
        var channel = test.channel(sealing: false)
        for step in test.open ?? [] {
            #expect(channel.opener.open(bytes(step.sealed)) == step.plaintext.map(bytes))
        }
        #expect((test.seal == nil) != (test.open == nil))
    }

    @Test(arguments: HelloCase.all) func `hellos are read as they stand`(_ test: HelloCase) throws {
        do throws(HelloError) {
            let hello = try Hello(bytes(test.hex))
            let accepted = test.verdict.accept
            #expect(accepted != nil)
            #expect(hello.flags.contains(.passcodeNeeded) == accepted?.passcodeNeeded)
            #expect(hello.flags.contains(.basicRefused) == accepted?.basicRefused)
            #expect(hello.maximumEnvelope == accepted?.maximumEnvelope)
            #expect(hello.sid == accepted.map { bytes($0.sid) })
            #expect(hello.share == accepted.map { bytes($0.share) })
            #expect(hello.associatedData == accepted.map { bytes($0.associatedData) })
            #expect(hello.bytes == bytes(test.hex))
        } catch {
            let name =
                switch error {
                case .tooShort: "too_short"
                case .unknownVersion: "unknown_version"
                case .limitOutOfRange: "limit_out_of_range"
                }
            #expect(test.verdict.error == name)
        }
    }

    @Test(arguments: FrameCase.all) func `frames are written and read as they stand`(_ test: FrameCase) {
        let tagBytes = bytes(test.tag)
        let tag = FrameTag(high: tagBytes[0], low: tagBytes[1])
        if let job = test.write {
            var writer = FrameWriter(
                job.message.bytes, tag: tag, isPlaintext: job.plaintext, frameBytes: job.frameBytes)
            var frames: [[UInt8]] = []
            while let frame = writer.next() { frames.append(frame) }
            #expect(frames == job.frames.map(bytes))
        }
        guard let job = test.read else { return }
        var assembly = FrameAssembly(sealedLimit: job.sealedLimit, plaintextLimit: job.plaintextLimit)
        for (number, step) in job.frames.enumerated() {
            let verdict: FrameAssembly.Verdict
            do throws(FrameFault) {
                verdict = assembly.take(try Frame(step.frame.bytes), at: .now)
            } catch {
                verdict = .refused(error)
            }
            #expect(verdict == step.verdict.assembly, "frame \(number)")
        }
    }

    /// The machines themselves, fed with the recorded scalars, say the recorded bytes.
    @Test(arguments: ExchangeCase.all) func `an exchange goes as recorded, byte for byte`(_ test: ExchangeCase) throws {
        let hello = try Hello(bytes(test.hello))
        let isWrong = test.answer == nil
        var payload = ExtendedHostFixture.payload
        if let answer = test.answer {
            payload = try #require(
                Envelope.decode(Array(answer.utf8), as: .client, limit: 65_536).payload)
        }
        // A host with another passcode does not see the recorded share; its plaintext reject is all the same.
        let scripted = ScriptedBytes(isWrong ? [hello.sid] : [hello.sid, bytes(test.yb)])
        var host = try ExtendedHostFixture(
            passcode: isWrong ? "not that" : test.passcode, payload: payload, appId: "com.example.myapp",
            sessionId: "550e8400-e29b-41d4-a716-446655440000",
            basic: hello.flags.contains(.basicRefused) ? .refused : .automatic, entropy: scripted.entropy)
        if test.hint?.contains("retryAfter") == true {
            for _ in 0..<ProtocolLimits.failedAttempts { _ = host.machine.budget.failed(at: host.now) }
        }
        host.connect("a")
        let read = host.hello("a")
        if !isWrong { #expect(read == bytes(test.hello)) }

        let profiles = try ClientProfiles(passcode: test.passcode.map { try Passcode($0) })
        var client = try ExtendedExchangeMachine(
            1, with: "host",
            ExtendedClientConfiguration(
                appId: "com.example.myapp", profiles: profiles,
                requestID: try #require(JoinRequestID("AAECAwQFBgcICQoLDA0ODw"))),
            entropy: ScriptedBytes([bytes(test.ya)]).entropy, at: host.now)
        #expect(client.request == Array(test.request.utf8))
        _ = client.handle(.connected, at: host.now)
        _ = client.handle(.discovered([ServiceInstance(id: 0, hasMessage: true, hasHello: true)]), at: host.now)
        _ = client.handle(.helloRead(bytes(test.hello)), at: host.now)
        var step = client.handle(.subscribed(mtu: test.mtu), at: host.now)
        var (written, answers) = ([[UInt8]](), [ExtendedHostAction]())
        while case .write(_, _, let frame)? = step.actions.first {
            written.append(frame)
            answers += host.write(frame, from: "a", mtu: test.hostFrameBytes + 5)
            step = client.handle(.written, at: host.now)
        }
        #expect(written == test.clientFrames.map(bytes))
        if let join = answers.joins.first { answers += host.decide(join) }
        let frames = host.pump(answers).frames
        #expect(frames.map(\.bytes) == test.hostFrames.map(bytes))
        for frame in frames { step = client.handle(.notified(frame.bytes), at: host.now) }
        var receipt: [[UInt8]] = []
        while case .write(_, _, let frame)? = step.actions.last {
            receipt.append(frame)
            step = client.handle(.written, at: host.now)
        }
        #expect(receipt == test.receipt.map(bytes))
        if let answer = test.answer {
            let security: MessageSecurity = test.passcode == nil ? .sealed : .authenticated
            let envelope = try Envelope.decode(Array(answer.utf8), as: .client, limit: 65_536)
            #expect(step.outcome == .handoff(envelope, security))
        } else {
            let envelope = try Envelope.decode(Array((test.hint ?? "").utf8), as: .client)
            #expect(client.heldOutcome == .failed(.rejected(Rejection(envelope), .plaintext)))
        }
    }
}

extension CPace {
    /// `sid_output_ir`, which is public, and which the protocol has no use for.
    fileprivate static func sessionIDOutput(_ transcript: Transcript) -> [UInt8] {
        Sodium.sha512 {
            $0.update(Array("CPaceSidOutput".utf8))
            $0.update(transcript.bytes)
        }.withBytes { Array($0) }
    }
}
