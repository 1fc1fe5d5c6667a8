// SPDX-License-Identifier: MIT

extension ExtendedHostMachine {
    /// A whole message has come.
    mutating func judge(
        _ message: [UInt8], _ tag: FrameTag, _ request: RequestID, from peer: PeerID, at now: Instant,
        mayRepeat: (JoinID) -> Bool
    ) -> [ExtendedHostAction] {
        if let attempt = attempts[tag] { return receipt(message, of: attempt, request, at: now) }
        guard let opening = OpeningMessage(message), FrameTag(share: opening.share) == tag else {
            return turnAway(.malformed, "Not a message 0.", tag, nil, request, peer, at: now)
        }
        guard attempts.hasRoom(for: peer) else {
            return turnAway(.busy, "Too many attempts at a time.", tag, opening, request, peer, at: now)
        }
        guard let snapshot = book.take(opening.sid, by: peer, at: now) else {
            return turnAway(.stale, "Read hello again.", tag, opening, request, peer, at: now)
        }
        if configuration.profiles.passcode != nil, let seconds = budget.retryAfter(at: now) {
            return turnAway(
                .busy, "Too many wrong passcodes.", tag, opening, request, peer, retryAfter: seconds, at: now)
        }
        let own = CPace.Share(scalar: snapshot.scalar, point: snapshot.hello.share)
        let channel = SealedChannel(
            .host, own: own, hello: snapshot.hello, associatedData: opening.associatedData,
            clientShare: opening.share, tag: tag)
        guard var channel, let plaintext = channel.opener.open(opening.sealed) else {
            return attemptFailed(opening, tag, request, peer, at: now)
        }
        failures.succeeded(peer)
        return judge(plaintext, opening, channel, tag, request, from: peer, at: now, mayRepeat: mayRepeat)
    }

    private mutating func attemptFailed(
        _ opening: OpeningMessage, _ tag: FrameTag, _ request: RequestID, _ peer: PeerID, at now: Instant
    ) -> [ExtendedHostAction] {
        failures.failed(peer)
        var actions: [ExtendedHostAction] = [.report(.attemptFailed(peer))]
        if configuration.profiles.passcode != nil, budget.failed(at: now), let seconds = budget.retryAfter(at: now) {
            actions.append(.report(.underAttack(retryAfter: seconds)))
        }
        return turnAway(.unauthorized, "That did not open.", tag, opening, request, peer, at: now) + actions
    }

    /// A request that opened; the write is acknowledged whatever is in it.
    private mutating func judge(
        _ plaintext: [UInt8], _ opening: OpeningMessage, _ channel: SealedChannel, _ tag: FrameTag,
        _ request: RequestID, from peer: PeerID, at now: Instant, mayRepeat: (JoinID) -> Bool
    ) -> [ExtendedHostAction] {
        func attempt(_ state: ExtendedAttempt.State, _ appId: String?) -> ExtendedAttempt {
            ExtendedAttempt(
                peer: peer, tag: tag, opening: opening, appId: appId, channel: channel, state: state)
        }
        func reject(
            _ machine: inout ExtendedHostMachine, _ appId: String?, _ reason: RejectReason, _ text: String
        ) -> [ExtendedHostAction] {
            machine.reply(
                machine.rejectReply(appId, reason, text), to: attempt(.answering(nil), appId), nil, at: now)
            return [.acknowledge(request)]
        }
        let envelope: Envelope
        do throws(EnvelopeError) {
            envelope = try Envelope.decode(plaintext, as: .host, limit: configuration.maximumEnvelope)
        } catch {
            return reject(&self, error.appId, error.rejectReason, error.message)
        }
        guard envelope.appId.hasSameBytes(as: configuration.appId) else {
            return reject(&self, envelope.appId, .appMismatch, "This host serves another app.")
        }
        if isStopped { return reject(&self, envelope.appId, .sessionEnded, "The session has ended.") }
        let key = AnswerMemory.Key(envelope, bytes: plaintext)
        if let key, let known = memory[key] {
            if known.answer.content == .handoff, !known.isDelivered, !mayRepeat(known.join) {
                return reject(&self, envelope.appId, .busy, "The host is serving another client.")
                    + [.report(.failed(nil, peer, .busy))]
            }
            var attempt = attempt(.answering(nil), envelope.appId)
            attempt.isRepeat = known.isDelivered
            reply(known.answer, to: attempt, known.join, at: now)
            let event = known.isDelivered ? ExtendedHostEvent.repeated : ExtendedHostEvent.joined
            return [.acknowledge(request), .report(event(known.join, peer))]
        }
        if let key, let join = undecided.first(where: { $0.value == key })?.key {
            attempts[tag] = attempt(.deciding(join), envelope.appId)
            return [.acknowledge(request), .report(.joined(join, peer))]
        }
        if admissions.isFull {
            return reject(&self, envelope.appId, .busy, "Too many requests at a time.")
                + [.report(.failed(nil, peer, .busy))]
        }
        // The bytes are kept only as their hash, in the memory's key.
        let join = admissions.add(envelope, bytes: [], from: peer, at: now)
        undecided[join.id] = key
        attempts[tag] = attempt(.deciding(join.id), envelope.appId)
        return [.acknowledge(request), .report(.requested(join.id, peer)), .decide(join)]
    }

    /// Message 1 of an attempt. Where it does not open, it may be another app's message 0 on the same device, whose
    /// share happens to begin alike: it is told to read hello again.
    private mutating func receipt(
        _ message: [UInt8], of attempt: ExtendedAttempt, _ request: RequestID, at now: Instant
    ) -> [ExtendedHostAction] {
        var attempt = attempt
        guard let plaintext = attempt.channel.opener.open(message) else {
            return [.refuse(request, .tagInUse), .report(.frameRefused(attempt.peer, .tagInUse))]
        }
        var actions: [ExtendedHostAction] = [.acknowledge(request)]
        attempts[attempt.tag] = attempt
        if plaintext.isEmpty, case .answering(let join?) = attempt.state, transmissions.finish(attempt.tag) {
            actions += [.report(.handedOff(join, attempt.peer))]
            attempt.state = .awaitingReceipt(join, until: now + ProtocolLimits.receipt)
        }
        guard plaintext.isEmpty, case .awaitingReceipt(let join, _) = attempt.state else { return actions }
        attempts[attempt.tag] = nil
        transmissions.drop { $0.tag == attempt.tag }
        if !attempt.isRepeat, memory.delivered(join) {
            attempts.delivered(join)
            actions.append(.report(.delivered(join, attempt.peer)))
        }
        return actions
    }

    /// A reject in plain text, to one who has not shown that it shares a key with us.
    private mutating func turnAway(
        _ reason: RejectReason, _ text: String, _ tag: FrameTag, _ opening: OpeningMessage?, _ request: RequestID,
        _ peer: PeerID, retryAfter: Int? = nil, at now: Instant
    ) -> [ExtendedHostAction] {
        guard transmissions.plaintextCount < ProtocolLimits.plaintextRejects else {
            return [.refuse(request, .insufficientResources), .report(.failed(nil, peer, .busy))]
        }
        var envelope = Envelope.reject(appId: nil, reason: reason, message: text)
        if let retryAfter { envelope.payload?["retryAfter"] = .int(retryAfter) }
        transmissions.add(
            envelope.encoded(), to: peer, tag, .plaintextReject(reason, message: text), opening: opening,
            yields: failures.failures(of: peer) > 0, at: now)
        return [.acknowledge(request)]
    }
}
