// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

struct DecodeCase: Decodable, Sendable, CustomTestStringConvertible {
    struct Accepted: Decodable, Sendable {
        var type: String
        var appId: String
        var sessionId: String?
        var payload: String?
    }

    struct Verdict: Decodable, Sendable {
        var accept: Accepted?
        var error: String?
        var appId: String?
    }

    var name: String
    var reader: String
    var message: VectorMessage
    var size: Int?
    var verdict: Verdict

    var testDescription: String { "\(reader): \(name)" }
    static let all = (try? SharedFiles.decode(VectorFile<Self>.self, "vectors/decode.json").cases) ?? []
}

struct HostCase: Decodable, Sendable, CustomTestStringConvertible {
    struct Host: Decodable, Sendable {
        var appId: String
        var sessionId: String
        var payload: String
    }

    struct File: Decodable, Sendable {
        var host: Host
        var cases: [HostCase]
    }

    enum Verdict: Decodable, Sendable {
        case word(String)
        case reject(reason: String, appId: String)
        case attError(UInt8)

        private enum Keys: String, CodingKey { case reject, appId, attError }

        init(from decoder: any Decoder) throws {
            if let word = try? decoder.singleValueContainer().decode(String.self) {
                self = .word(word)
                return
            }
            let container = try decoder.container(keyedBy: Keys.self)
            if let code = try container.decodeIfPresent(UInt8.self, forKey: .attError) {
                self = .attError(code)
            } else {
                self = .reject(
                    reason: try container.decode(String.self, forKey: .reject),
                    appId: try container.decode(String.self, forKey: .appId))
            }
        }
    }

    struct Decision: Decodable, Sendable {
        var handoff: String?
        var reject: String?
        var message: String?
    }

    var name: String
    var message: VectorMessage
    var mtu: Int
    var size: Int?
    var verdict: Verdict
    var decision: Decision?
    var answer: String?
    var answerReason: String?

    var testDescription: String { name }
    static let file = try? SharedFiles.decode(File.self, "vectors/host.json")
    static let all = file?.cases ?? []
}

struct ClientCase: Decodable, Sendable, CustomTestStringConvertible {
    struct File: Decodable, Sendable {
        struct Client: Decodable, Sendable { var appId: String }
        var client: Client
        var cases: [ClientCase]
    }

    var name: String
    var notifications: [VectorMessage]
    var verdict: String

    var testDescription: String { name }
    static let file = try? SharedFiles.decode(File.self, "vectors/client.json")
    static let all = file?.cases ?? []
}

struct WriteCase: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var envelope: DecodeCase.Accepted
    var text: String

    var testDescription: String { name }
    static let all = (try? SharedFiles.decode(VectorFile<Self>.self, "vectors/write.json").cases) ?? []
}

struct BudgetCase: Decodable, Sendable, CustomTestStringConvertible {
    struct File: Decodable, Sendable {
        var appId: String
        var sessionId: String
        var cases: [BudgetCase]
    }

    var name: String
    var mtu: Int
    var multipleNotifications: Bool
    var bytes: Int
    var payloadBytes: Int

    var testDescription: String { name }
    static let file = try? SharedFiles.decode(File.self, "vectors/budget.json")
    static let all = file?.cases ?? []
}

@Suite struct VectorTests {
    @Test func `there are at least sixty cases besides the budget's, and every name is unique`() {
        let files = [
            DecodeCase.all.map(\.testDescription), HostCase.all.map(\.name), ClientCase.all.map(\.name),
            WriteCase.all.map(\.name),
        ]
        #expect(files.allSatisfy { $0.count > 10 && Set($0).count == $0.count })
        #expect(files.map(\.count).reduce(0, +) >= 60)
        #expect(BudgetCase.all.count >= 20)
    }

    @Test(arguments: DecodeCase.all)
    func `a message is read as the vector says`(_ vector: DecodeCase) throws {
        let bytes = vector.message.bytes
        if let size = vector.size { #expect(bytes.count == size) }
        let reader = try #require(Envelope.Reader(rawValue: vector.reader))
        do throws(EnvelopeError) {
            let envelope = try Envelope.decode(bytes, as: reader)
            let accepted = vector.verdict.accept
            #expect(accepted != nil, "taken, but should be \(vector.verdict.error ?? "?")")
            #expect(envelope.type.rawValue == accepted?.type)
            #expect(Array(envelope.appId.utf8) == accepted.map { Array($0.appId.utf8) })
            #expect(envelope.sessionId == accepted?.sessionId)
            if accepted?.payload != nil || (vector.size == nil && vector.message.parts == nil) {
                #expect(envelope.payload?.encoded() == accepted?.payload.map { Array($0.utf8) })
            }
        } catch {
            #expect(error.code.description == vector.verdict.error, "\(error)")
            #expect(error.appId == vector.verdict.appId)
        }
    }

    @Test(arguments: HostCase.all)
    func `a host decides as the vector says`(_ vector: HostCase) throws {
        let host = try #require(HostCase.file?.host)
        let payload = try JSONObject(parsing: Array(host.payload.utf8))
        var machine = try HostMachine(
            HostConfiguration(appId: host.appId, sessionId: host.sessionId, payload: payload))
        let bytes = vector.message.bytes
        if let size = vector.size { #expect(bytes.count == size) }
        let now = Instant.now
        _ = machine.centralConnected("a", at: now)
        _ = machine.subscribed("a", at: now)
        let actions = machine.write(1, from: "a", bytes, mtu: vector.mtu, at: now)
        switch vector.verdict {
        case .attError(let code):
            #expect(actions.first == .refuse(1, ATTErrorCode(rawValue: code)))
            #expect(actions.notifications.isEmpty)
        case .reject(let reason, let appId):
            #expect(actions.first == .acknowledge(1))
            #expect(actions.joins.isEmpty)
            let reject = try Envelope.decode(try #require(actions.notifications.only), as: .client)
            #expect(reject.rejection?.reason.rawValue == reason)
            #expect(Array(reject.appId.utf8) == Array(appId.utf8))
        case .word("wait"):
            #expect(actions == [.acknowledge(1)])
        case .word(let word):
            #expect(word == "ask")
            #expect(actions.first == .acknowledge(1))
            #expect(actions.notifications.isEmpty)
            let join = try #require(actions.joins.only)
            let answer = machine.admissionDecided(join.id, try decision(vector), at: now)
            let sent = try #require(answer.notifications.only)
            #expect(sent.count <= NotificationBudget(mtu: vector.mtu).bytes)
            if let wanted = vector.answer {
                #expect(String(decoding: sent, as: UTF8.self) == wanted)
            } else {
                #expect(try Envelope.decode(sent, as: .client).rejection?.reason.rawValue == vector.answerReason)
            }
        }
    }

    private func decision(_ vector: HostCase) throws -> AdmissionDecision {
        let decision = try #require(vector.decision)
        if let reason = decision.reject {
            return .reject(RejectReason(rawValue: reason), message: decision.message ?? "")
        }
        return .handoff(payload: try decision.handoff.map { try JSONObject(parsing: Array($0.utf8)) })
    }

    @Test(arguments: ClientCase.all)
    func `a client judges as the vector says`(_ vector: ClientCase) throws {
        let appId = try #require(ClientCase.file?.client.appId)
        var assembly = AnswerAssembly(appId: appId)
        var verdict = AnswerVerdict.ignore
        for message in vector.notifications {
            verdict = assembly.append(message.bytes, at: .now)
        }
        let word =
            switch verdict {
            case .take: "take"
            case .reject: "reject"
            case .hold: "hold"
            case .ignore: "ignore"
            case .incomplete: "incomplete"
            case .malformed: "malformed"
            }
        #expect(word == vector.verdict)
    }

    @Test(arguments: WriteCase.all)
    func `a message is written as the vector says`(_ vector: WriteCase) throws {
        let envelope = Envelope(
            type: try #require(Envelope.Kind(rawValue: vector.envelope.type)), appId: vector.envelope.appId,
            sessionId: vector.envelope.sessionId,
            payload: try vector.envelope.payload.map { try JSONObject(parsing: Array($0.utf8)) })
        #expect(envelope.encoded() == Array(vector.text.utf8))
        let reader: Envelope.Reader = envelope.type == .joinRequest ? .host : .client
        #expect(try Envelope.decode(Array(vector.text.utf8), as: reader) == envelope)
    }

    @Test(arguments: BudgetCase.all)
    func `a budget is as the vector says`(_ vector: BudgetCase) throws {
        let file = try #require(BudgetCase.file)
        let budget = NotificationBudget(
            mtu: vector.mtu, mayUseMultipleNotificationPDU: vector.multipleNotifications)
        #expect(budget.bytes == vector.bytes)
        #expect(budget.payloadBytes(appId: file.appId, sessionId: file.sessionId) == vector.payloadBytes)
    }
}

extension Array {
    var only: Element? { count == 1 ? first : nil }
}

extension [HostAction] {
    var notifications: [[UInt8]] {
        compactMap { if case .notify(let bytes, _) = $0 { bytes } else { nil } }
    }

    var joins: [JoinRequest] {
        compactMap { if case .decide(let join) = $0 { join } else { nil } }
    }

    var events: [HostEvent] {
        compactMap { if case .report(let event) = $0 { event } else { nil } }
    }
}
