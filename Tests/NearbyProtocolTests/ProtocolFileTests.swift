// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct ProtocolFileTests {
    struct File: Decodable {
        struct Characteristic: Decodable {
            var uuid: String
            var profile: String
            var properties: [String]
        }

        struct Service: Decodable { var uuid: String }

        struct GATT: Decodable {
            var service: Service
            var characteristics: [String: Characteristic]
        }

        struct Field: Decodable {
            var type: String
            var required: Bool
            var nonEmpty: Bool?
            var fields: [String: Field2]?
        }

        struct Field2: Decodable {
            var type: String
            var required: Bool
        }

        struct Kind: Decodable {
            var from: String
            var fields: [String: Field]
        }

        struct Messages: Decodable {
            var keyOrder: [String]
            var types: [String: Kind]
            var unknownAppId: String
            var reservedPayloadPrefix: String
        }

        var format: Int
        var protocolVersion: Int
        var gatt: GATT
        var envelope: Messages
        var rejectReasons: [String]
        var attErrors: [String: Int]
        var limits: [String: Int]
        var milliseconds: [String: Int]
    }

    let file: File

    init() throws {
        file = try SharedFiles.decode(File.self, "protocol.json")
    }

    @Test func `the UUIDs are the file's`() {
        #expect(file.gatt.service.uuid == NearbyService.service)
        #expect(
            file.gatt.characteristics.mapValues(\.uuid) == [
                "message": NearbyService.message, "hello": NearbyService.hello, "channel": NearbyService.channel,
            ])
        #expect(file.gatt.characteristics["message"]?.properties == ["write", "notify"])
    }

    @Test func `the limits are the file's, all of them`() {
        #expect(file.protocolVersion == ProtocolLimits.protocolVersion)
        #expect(
            file.limits == [
                "hostEnvelopeBytes": ProtocolLimits.envelopeBytes,
                "clientEnvelopeBytes": ProtocolLimits.clientEnvelopeBytes,
                "receivedEnvelopeBytes": ProtocolLimits.envelopeBytes,
                "comfortableEnvelopeBytes": ProtocolLimits.comfortableEnvelopeBytes,
                "jsonDepth": ProtocolLimits.jsonDepth,
                "defaultMTU": ProtocolLimits.defaultMTU,
                "notificationHeaderBytes": ProtocolLimits.notificationHeader,
                "multipleNotificationHeaderBytes": ProtocolLimits.multipleNotificationHeader,
                "longWritePartBytes": ProtocolLimits.longWritePartBytes,
                "queuedAnswers": ProtocolLimits.queuedAnswers,
                "pendingAdmissions": ProtocolLimits.pendingAdmissions,
                "hostPeers": ProtocolLimits.hostPeers,
                "devicesSeen": ProtocolLimits.devicesSeen,
                "serviceInstances": ProtocolLimits.serviceInstances,
                "attemptsPerDevice": ProtocolLimits.attemptsPerDevice,
                "rssiReadings": ProtocolLimits.rssiReadings,
                "rssiHysteresisDB": ProtocolLimits.rssiHysteresis,
            ])
    }

    @Test func `the times are the file's, all of them`() {
        let times: [String: Duration] = [
            "slotWhenOthersWait": ProtocolLimits.slotWhenOthersWait,
            "slotAtMost": ProtocolLimits.slotAtMost,
            "admission": ProtocolLimits.admission,
            "lateSubscription": ProtocolLimits.lateSubscription,
            "longWriteRemainder": ProtocolLimits.longWriteRemainder,
            "splitAnswer": ProtocolLimits.splitAnswer,
            "doubtfulAnswer": ProtocolLimits.doubtfulAnswer,
            "answer": ProtocolLimits.answer,
            "connect": ProtocolLimits.connect,
            "attStep": ProtocolLimits.attStep,
            "firstRetryPause": ProtocolLimits.firstRetryPause,
            "clientDeadline": ProtocolLimits.clientDeadline,
            "rssiAge": ProtocolLimits.rssiAge,
        ]
        #expect(file.milliseconds.mapValues { Duration.milliseconds($0) } == times)
    }

    @Test func `the reasons are the file's, in its order`() {
        #expect(file.rejectReasons == RejectReason.known.map(\.rawValue))
    }

    @Test func `the ATT errors are the file's`() {
        #expect(
            file.attErrors == [
                "invalidOffset": Int(ATTErrorCode.invalidOffset.rawValue),
                "insufficientResources": Int(ATTErrorCode.insufficientResources.rawValue),
                "answerDoesNotFit": Int(ATTErrorCode.answerDoesNotFit.rawValue),
                "tagInUse": Int(ATTErrorCode.tagInUse.rawValue),
                "frameRefused": Int(ATTErrorCode.frameRefused.rawValue),
            ])
        #expect(file.envelope.unknownAppId == Envelope.unknownAppId)
    }

    @Test func `keys are written in the file's order`() throws {
        let envelope = Envelope.handoff(appId: "a", sessionId: "s", payload: [:])
        #expect(try JSONObject(parsing: envelope.encoded()).keys == file.envelope.keyOrder)
    }

    /// A message of each type, with one field left out, or wrong, at a time.
    @Test func `fields are required and typed as the file says`() throws {
        #expect(Set(file.envelope.types.keys) == Set(Envelope.Kind.allCases.map(\.rawValue)))
        for (type, kind) in file.envelope.types {
            let whole: JSONObject = [
                "type": .string(type), "protocolVersion": 1, "appId": "a", "sessionId": "s",
                "payload": ["reason": "r", "message": "m"],
            ]
            let reader: Envelope.Reader = kind.from == "client" ? .host : .client
            func isTaken(_ object: JSONObject) -> Bool {
                (try? Envelope.decode(object.encoded(), as: reader)) != nil
            }
            #expect(isTaken(whole))
            #expect(Set(kind.fields.keys) == Set(file.envelope.keyOrder))
            for (name, field) in kind.fields {
                var without = whole
                without[name] = nil
                #expect(isTaken(without) == !field.required, "\(type) without \(name)")
                var wrong = whole
                wrong[name] = field.type == "string" ? 1 : "1"
                #expect(!isTaken(wrong), "\(type) with a wrong \(name)")
                var empty = whole
                empty[name] = ""
                if field.type == "string", name != "type" {
                    #expect(isTaken(empty) == (field.nonEmpty != true), "\(type) with an empty \(name)")
                }
                for (inner, innerField) in field.fields ?? [:] {
                    var payload = whole.object("payload") ?? [:]
                    payload[inner] = nil
                    var changed = whole
                    changed[name] = .object(payload)
                    #expect(isTaken(changed) == !innerField.required, "\(type) without \(name).\(inner)")
                }
            }
        }
    }
}
