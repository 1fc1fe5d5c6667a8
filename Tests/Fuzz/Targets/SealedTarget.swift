// SPDX-License-Identifier: MIT

import Synchronization

@testable import NearbyProtocol

/// Sealed messages in both directions: altered, cut, made up, and rightly sealed by a peer that means ill.
///
/// The exchanges are made once, and each run works on copies of the machines.
enum SealedTarget {
    static let now = Instant.now
    static let limit = 4_096
    static let payload: JSONObject = ["roomCode": "SWIFT42"]

    /// The same bytes in every process, so that what was found is found again.
    static var entropy: Entropy {
        let count = Atomic<UInt8>(0)
        return Entropy { memory, size in
            let number = count.wrappingAdd(1, ordering: .relaxed).oldValue
            for position in 0..<size { memory[position] = Sodium.genericHash([number, UInt8(position)])[0] }
        }
    }

    static func test(_ bytes: [UInt8]) {
        guard let exchange = SealedExchange.made else { return require(false, "the exchange is made") }
        var input = FuzzInput(bytes)
        switch input.byte() % 6 {
        case 0: opening(&input, exchange)
        case 1: frames(&input, exchange)
        case 2: request(input.everything(), exchange)
        case 3: receipt(&input, exchange)
        case 4: answer(&input, exchange)
        default: handoff(input.everything(), exchange)
        }
    }

    // MARK: To the host

    /// Message 0, altered: only as it was does it open.
    private static func opening(_ input: inout FuzzInput, _ exchange: SealedExchange) {
        var host = exchange.greeted
        let right = exchange.opening.bytes
        let message = altered(right, &input)
        // Under its own tag, whatever that is by now, so that not all ends at the tag.
        let tag = message.count < 20 ? exchange.tag : FrameTag(high: message[18], low: message[19])
        let actions = deliver(message, tag, to: &host, frameBytes: 182)
        let isAsked = actions.contains { if case .decide = $0 { true } else { false } }
        require(isAsked == (message == right), "message 0 opens only as it was")
        checkPlaintext(actions, &host)
    }

    /// Whatever is no frame, or one of a message that nobody meant.
    private static func frames(_ input: inout FuzzInput, _ exchange: SealedExchange) {
        var host = input.byte() & 1 == 0 ? exchange.greeted : exchange.served
        var (number, time) = (UInt64(100), now)
        while !input.isEmpty {
            let peer: PeerID = input.byte() & 1 == 0 ? "a" : "b"
            time += .milliseconds(100 * Int(input.byte()))
            let bytes = input.bytes(Int(input.byte()))
            number += 1
            let actions = host.write(RequestID(number), from: peer, bytes, mtu: 185, at: time)
            require(answers(actions, RequestID(number)) == 1, "a write is answered once")
            require(!actions.contains { if case .decide = $0 { true } else { false } }, "nobody gets in so")
            checkPlaintext(actions, &host)
            require(host.footprint < 64, "little is remembered")
        }
    }

    /// A client that knows the passcode, and sends what it likes.
    private static func request(_ plaintext: [UInt8], _ exchange: SealedExchange) {
        var host = exchange.greeted
        guard var channel = exchange.channel(), let sealed = channel.sealer.seal(plaintext) else {
            return require(false, "it seals")
        }
        let opening = OpeningMessage(
            sid: exchange.opening.sid, largestNotification: exchange.opening.largestNotification,
            share: exchange.opening.share, sealed: sealed.bytes)
        guard opening.bytes.count <= limit + ProtocolLimits.messageOverhead else { return }
        let expected = ExpectedVerdict(plaintext, .host, limit: limit)
        var actions = deliver(opening.bytes, exchange.tag, to: &host, frameBytes: 182)
        for case .decide(let join) in actions {
            require(
                expected.allows(nil) && join.appId.hasSameBytes(as: EnvelopeTarget.appId), "right ones are asked for")
            actions += host.admissionDecided(join.id, .handoff(), at: now)
        }
        guard let answer = read(actions, &host, &channel) else { return require(false, "whoever knows it is answered") }
        if answer.type == .handoff {
            require(answer.payload == payload && expected.allows(nil), "a right request gets the payload")
        } else {
            let reason = answer.rejection?.reason
            require(expected.allows(reason) || expected.allows(nil) && reason == .appMismatch, "or \(expected.reasons)")
        }
    }

    private static func receipt(_ input: inout FuzzInput, _ exchange: SealedExchange) {
        var host = exchange.served
        let message = altered(exchange.receipt, &input)
        let actions = deliver(message, exchange.tag, to: &host, frameBytes: 20)
        let isDelivered = actions.contains { if case .report(.delivered) = $0 { true } else { false } }
        require(isDelivered == (message == exchange.receipt), "only the receipt is one")
        checkPlaintext(actions, &host)
    }

    // MARK: To the client

    private static func answer(_ input: inout FuzzInput, _ exchange: SealedExchange) {
        var client = exchange.client
        let message = altered(exchange.answer, &input)
        let step = notify(message, exchange.clientTag, to: &client, isPlaintext: input.byte() & 1 == 1)
        let isTaken = client.phase == .writingReceipt
        require(!isTaken || message == exchange.answer, "the answer opens only as it was")
        require(step.outcome == nil, "what does not open ends nothing")
        for case .write(_, _, let frame) in step.actions { require(frame.count <= 182, "the receipt fits") }
    }

    /// A host that knows the passcode, and answers what it likes.
    private static func handoff(_ plaintext: [UInt8], _ exchange: SealedExchange) {
        guard plaintext.count <= limit, let channel = exchange.hostChannel(),
            let sealed = channel.sealer.seal(plaintext)
        else { return }
        var client = exchange.client
        let step = notify(sealed.bytes, exchange.clientTag, to: &client, isPlaintext: false)
        let expected = ExpectedVerdict(plaintext, .client, limit: limit)
        let envelope = try? Envelope.decode(plaintext, as: .client, limit: limit)
        let isOurs = envelope?.appId.hasSameBytes(as: EnvelopeTarget.appId) ?? false
        switch step.outcome {
        case nil:
            require(client.phase == .writingReceipt && envelope?.type == .handoff && isOurs, "a right handoff is taken")
            guard case .handoff(let taken, .authenticated)? = client.heldOutcome else {
                return require(false, "and held until the receipt is written")
            }
            require(!(taken.payload?.hasReservedKeys ?? true), "without reserved keys")
        case .failed(.malformedAnswer)?:
            require(!expected.allows(nil) || envelope?.type == .handoff && !isOurs, "only what is wrong is malformed")
        case .failed(.rejected(_, .authenticated))?, .failed(.otherApp)?:
            require(envelope?.type == .reject, "only a reject rejects")
        case let outcome?:
            require(false, "an outcome that a message cannot have: \(outcome)")
        }
    }

    // MARK: Moving bytes

    /// The bytes with changes as the input says: a bit flipped, a byte put in, cut off, more of it. Without any they stay as they are.
    private static func altered(_ bytes: [UInt8], _ input: inout FuzzInput) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int(input.byte() % 5) {
            let (kind, place, value) = (input.byte() % 4, input.word(), input.byte())
            switch kind {
            case 0 where !bytes.isEmpty: bytes[place % bytes.count] ^= 1 << (value & 7)
            case 1: bytes.insert(value, at: place % (bytes.count + 1))
            case 2: bytes = Array(bytes.prefix(place % (bytes.count + 1)))
            default: bytes += [UInt8](repeating: value, count: place % 600)
            }
        }
        return bytes
    }

    static func deliver(
        _ message: [UInt8], _ tag: FrameTag, to host: inout ExtendedHostMachine, frameBytes: Int
    ) -> [ExtendedHostAction] {
        var writer = FrameWriter(message, tag: tag, frameBytes: frameBytes)
        var (actions, number) = ([ExtendedHostAction](), UInt64(1_000))
        while let frame = writer.next() {
            number += 1
            let answered = host.write(RequestID(number), from: "a", frame, mtu: 185, at: now)
            require(answers(answered, RequestID(number)) == 1, "a write is answered once")
            actions += answered
        }
        return actions
    }

    static func notify(
        _ message: [UInt8], _ tag: FrameTag, to client: inout ExtendedExchangeMachine, isPlaintext: Bool
    ) -> ExtendedExchangeMachine.Step {
        var writer = FrameWriter(message, tag: tag, isPlaintext: isPlaintext, frameBytes: 180)
        var all = ExtendedExchangeMachine.Step()
        while let frame = writer.next(), all.outcome == nil {
            let step = client.handle(.notified(frame), at: now)
            all.actions += step.actions
            all.outcome = step.outcome
        }
        return all
    }

    private static func answers(_ actions: [ExtendedHostAction], _ request: RequestID) -> Int {
        actions.count { action in
            switch action {
            case .acknowledge(let id), .answer(let id, _), .refuse(let id, _): id == request
            default: false
            }
        }
    }

    /// Every notification that the actions lead to.
    static func pump(_ actions: [ExtendedHostAction], _ host: inout ExtendedHostMachine) -> [[UInt8]] {
        var (queue, frames) = (actions[...], [[UInt8]]())
        while let action = queue.popFirst() {
            guard case .notify(let id, let frame, _) = action else { continue }
            require(frame.count <= 180, "no notification is longer than the connection carries")
            frames.append(frame)
            queue += host.frameSent(id, at: now)
        }
        return frames
    }

    /// Whatever goes out in plain text is one of the rejects that may.
    private static func checkPlaintext(_ actions: [ExtendedHostAction], _ host: inout ExtendedHostMachine) {
        let mayBe: Set<RejectReason> = [.malformed, .busy, .stale, .unauthorized]
        var assemblies: [FrameTag: FrameAssembly] = [:]
        for bytes in pump(actions, &host) {
            guard let frame = try? Frame(bytes) else { return require(false, "only frames go out") }
            let verdict = assemblies[frame.tag, default: FrameAssembly(sealedLimit: limit + 128, plaintextLimit: 512)]
                .take(frame, at: now)
            guard case .complete(let message, isPlaintext: true) = verdict else { continue }
            let envelope = try? Envelope.decode(message, as: .client)
            require(envelope?.appId == "-", "a plaintext reject names no app")
            require(envelope?.rejection.map { mayBe.contains($0.reason) } ?? false, "and one of a few reasons")
        }
    }

    private static func read(
        _ actions: [ExtendedHostAction], _ host: inout ExtendedHostMachine, _ channel: inout SealedChannel
    ) -> Envelope? {
        var assembly = FrameAssembly(sealedLimit: limit + 128)
        for bytes in pump(actions, &host) {
            guard let frame = try? Frame(bytes), case .complete(let message, _) = assembly.take(frame, at: now),
                let plaintext = channel.opener.open(message)
            else { continue }
            return try? Envelope.decode(plaintext, as: .client, limit: limit)
        }
        return nil
    }
}
