// SPDX-License-Identifier: MIT

@testable import NearbyProtocol

/// Every way in which an envelope's bytes come in: JSON, both readers, both roles' machines and their order of
/// decisions, held against a second reading of docs/protocol.md.
enum EnvelopeTarget {
    static let appId = "com.example.app"
    private static let now = Instant.now

    static func test(_ bytes: [UInt8]) {
        json(bytes)
        for reader in [Envelope.Reader.host, .client] {
            for limit in [ProtocolLimits.envelopeBytes, ProtocolLimits.extendedEnvelopeBytes] {
                decode(bytes, as: reader, limit: limit)
            }
        }
        prefixes(bytes)
        host(bytes)
        client(bytes)
    }

    // MARK: Reading

    private static func json(_ bytes: [UInt8]) {
        guard let value = try? JSONValue(parsing: bytes) else { return }
        let written = value.encoded()
        let again = try? JSONValue(parsing: written)
        require(again == value, "what was read is read again from what is written")
        require(again?.encoded() == written, "it is written in one form")
        require(depth(value) <= ProtocolLimits.jsonDepth, "nesting is bounded")
    }

    private static func depth(_ value: JSONValue) -> Int {
        switch value {
        case .array(let values): 1 + (values.map(depth).max() ?? 0)
        case .object(let object): 1 + (object.map { depth($0.value) }.max() ?? 0)
        case .number(let number):
            checked(number)
        default: 0
        }
    }

    private static func checked(_ number: JSONNumber) -> Int {
        if let int = number.int, abs(Double(int)) < 9e15 {
            require(number.double == Double(int), "a number is one, as integer and as double")
        }
        return 0
    }

    private static func decode(_ bytes: [UInt8], as reader: Envelope.Reader, limit: Int) {
        let expected = ExpectedVerdict(bytes, reader, limit: limit)
        do throws(EnvelopeError) {
            let envelope = try Envelope.decode(bytes, as: reader, limit: limit)
            require(expected.allows(nil), "accepted, and yet \(expected.reasons)")
            require(envelope.protocolVersion == 1 && !envelope.appId.isEmpty, "version and appId are there")
            require((envelope.type == .joinRequest) == (reader == .host), "its type belongs to the direction")
            require(envelope.type == .joinRequest || envelope.payload != nil, "a payload is there")
            require(envelope.type != .handoff || envelope.sessionId != nil, "a handoff has a session")
            let written = envelope.encoded()
            let again = try? Envelope.decode(written, as: reader, limit: written.count)
            require(again == envelope && again?.encoded() == written, "it is read again from what is written")
        } catch {
            require(expected.allows(error.rejectReason), "\(error.rejectReason), and yet \(expected.reasons)")
            require(error.rejectReason != .tooLarge || error.size == bytes.count, "the size is told")
        }
    }

    private static func prefixes(_ bytes: [UInt8]) {
        guard (try? JSONObject(parsing: bytes)) != nil, let start = bytes.firstIndex(of: UInt8(ascii: "{")),
            let end = bytes.lastIndex(of: UInt8(ascii: "}"))
        else { return }
        require(!Envelope.isPrefix(bytes), "a whole object is no beginning")
        // All of a short one; of a long one what one run can pay for.
        for cut in stride(from: start + 1, through: end, by: max(1, bytes.count / 64)) {
            require(Envelope.isPrefix(Array(bytes[..<cut])), "its first \(cut) bytes are the beginning of it")
        }
    }

    // MARK: The host

    private static let served: HostMachine? = {
        var machine = try? HostMachine(
            HostConfiguration(appId: appId, sessionId: "s", payload: ["roomCode": "SWIFT42"]))
        _ = machine?.centralConnected("a", at: now)
        _ = machine?.subscribed("a", at: now)
        return machine
    }()

    private static func host(_ bytes: [UInt8]) {
        guard var machine = served else { return require(false, "the host starts") }
        let mtu = [517, 185, 100, 64, 23][bytes.count % 5]
        let budget = NotificationBudget(mtu: mtu).bytes
        var actions = machine.write(1, from: "a", bytes, mtu: mtu, at: now)
        let answers = actions.count {
            if case .acknowledge = $0 { true } else if case .refuse = $0 { true } else { false }
        }
        require(answers == 1, "a write is answered once")
        if LongWrites.isPart(bytes), actions == [.acknowledge(1)] {
            actions += machine.timerFired(at: now + ProtocolLimits.longWriteRemainder)
            require(reject(actions)?.rejection?.reason == .malformed, "what stays half is malformed")
            return
        }
        if case .refuse(_, let code)? = actions.first {
            require(code == .answerDoesNotFit && actions.count == 2, "refused only where no answer fits: \(code)")
            let least = Envelope.reject(appId: nil, reason: .busy, message: "").encoded().count
            require(least > budget || bytes.count > 3, "a short request can be answered")
            return
        }
        for case .decide(let join) in actions {
            require(ExpectedVerdict(bytes, .host, limit: 512).allows(nil), "only what is right reaches the app")
            require(join.appId.hasSameBytes(as: appId), "only requests for the own app reach it")
            actions += machine.admissionDecided(join.id, .handoff(), at: now)
        }
        for case .notify(let answer, _) in actions {
            require(answer.count <= budget, "nothing longer than a notification goes out")
            let envelope = try? Envelope.decode(answer, as: .client)
            require(envelope != nil, "what goes out can be read")
            guard envelope?.type == .reject else { continue }
            var expected = ExpectedVerdict(bytes, .host, limit: 512)
            if expected.allows(nil) { expected.reasons = [.appMismatch, .tooLarge] }
            require(expected.allows(envelope?.rejection?.reason), "rejected as \(expected.reasons)")
            let readable = (try? JSONObject(parsing: Envelope.stripped(bytes)))?.string("appId")
            let wanted = bytes.count > 512 ? nil : readable.flatMap { $0.isEmpty ? nil : $0 }
            require(envelope?.appId.hasSameBytes(as: wanted ?? "-") ?? false, "with the request's own appId")
        }
    }

    private static func reject(_ actions: [HostAction]) -> Envelope? {
        for case .notify(let bytes, _) in actions { return try? Envelope.decode(bytes, as: .client) }
        return nil
    }

    // MARK: The client

    private static let waiting: ExchangeMachine = {
        var machine = ExchangeMachine(1, with: "h", appId: appId, request: [], at: now)
        for input in [ExchangeInput.connected, .discovered(instances: [1]), .subscribed, .written] {
            _ = machine.handle(input, at: now)
        }
        return machine
    }()

    private static func client(_ bytes: [UInt8]) {
        let expected = ExpectedVerdict(bytes, .client, limit: 512)
        let envelope = try? Envelope.decode(bytes, as: .client)
        let isOurs = envelope?.appId.hasSameBytes(as: appId) ?? false
        var machine = waiting
        let step = machine.handle(.notified(bytes, instance: nil), at: now)
        if case .handoff(let taken)? = step.outcome {
            require(
                expected.allows(nil) && isOurs && taken == envelope, "only a right handoff for the own app is taken")
        }
        guard let envelope, isOurs, envelope.type == .handoff else { return }
        require(step.outcome == .handoff(envelope), "a right handoff is taken")
        // However a host may split it.
        let cut = Int(bytes.reduce(UInt16(0)) { $0 &* 31 &+ UInt16($1) }) % max(1, bytes.count)
        var split = waiting
        let first = split.handle(.notified(Array(bytes[..<cut]), instance: nil), at: now).outcome
        let second = split.handle(.notified(Array(bytes[cut...]), instance: nil), at: now).outcome
        require((first ?? second) == .handoff(envelope), "a handoff in two parts is taken")
    }
}

/// docs/protocol.md ("The envelope") once more, written for this purpose: what may be answered to bytes. nil: accepted.
struct ExpectedVerdict {
    var reasons: [RejectReason?]

    func allows(_ reason: RejectReason?) -> Bool { reasons.contains(reason) }

    init(_ bytes: [UInt8], _ reader: Envelope.Reader, limit: Int) {
        reasons = Self.judge(bytes, reader, limit: limit)
    }

    private static func judge(_ bytes: [UInt8], _ reader: Envelope.Reader, limit: Int) -> [RejectReason?] {
        guard bytes.count <= limit else { return [.tooLarge] }
        let padding: Set<UInt8> = [0, 0x09, 0x0A, 0x0D, 0x20]
        let end = bytes.lastIndex { !padding.contains($0) }.map { $0 + 1 } ?? 0
        guard let object = try? JSONObject(parsing: Array(bytes[..<end])) else { return [.malformed] }
        guard case .number(let version)? = object["protocolVersion"] else { return [.malformed] }
        guard version.int == 1 else {
            // Where a double cannot tell an integer from a fraction, either will do.
            let size = abs(Double(version.text) ?? .infinity)
            let isInteger = version.int != nil || size >= 0x1p63
            return size >= 0x1p52 ? [.unsupportedVersion, .malformed] : [isInteger ? .unsupportedVersion : .malformed]
        }
        let types = reader == .host ? ["join_request"] : ["handoff", "reject"]
        guard let type = object.string("type"), types.contains(where: { Array($0.utf8) == Array(type.utf8) }),
            let appId = object.string("appId"), !appId.utf8.isEmpty
        else { return [.malformed] }
        let (session, payload) = (object["sessionId"] ?? .null, object["payload"] ?? .null)
        guard session.isNull ? type != "handoff" : session.string != nil else { return [.malformed] }
        guard payload.isNull ? type == "join_request" : payload.object != nil else { return [.malformed] }
        if type == "reject", payload.object?.string("reason") == nil || payload.object?.string("message") == nil {
            return [.malformed]
        }
        return [nil]
    }
}
