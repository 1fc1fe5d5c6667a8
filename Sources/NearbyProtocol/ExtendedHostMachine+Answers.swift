// SPDX-License-Identifier: MIT

extension ExtendedHostMachine {
    // MARK: Answering

    /// The app's decision, as far as it fits.
    ///
    /// - Parameter isApps: whether the app said so itself; only that is remembered.
    mutating func answer(
        _ pending: Admissions.Pending, _ decision: AdmissionDecision, isApps: Bool, at now: Instant
    ) -> [ExtendedHostAction] {
        let request = pending.request
        var actions: [ExtendedHostAction] = []
        let reply: HostReply
        switch decision {
        case .reject(let reason, let message):
            reply = rejectReply(request.appId, reason, message)
        case .handoff(let payload, let sessionId):
            let payload = payload ?? configuration.payload ?? [:]
            let envelope = Envelope.handoff(
                appId: configuration.appId, sessionId: sessionId ?? configuration.sessionId, payload: payload)
            let (bytes, limit) = (envelope.encoded(), configuration.maximumEnvelope)
            if payload.hasReservedKeys {
                actions.append(.report(.failed(request.id, request.peer, .reservedKeys)))
                reply = rejectReply(request.appId, .internal, "The host's app failed.")
            } else if bytes.count > limit {
                let failure = ExtendedHostFailure.handoffTooLarge(size: bytes.count, limit: limit)
                actions.append(.report(.failed(request.id, request.peer, failure)))
                reply = rejectReply(
                    request.appId, .tooLarge, "The handoff has \(bytes.count) bytes, \(limit) are allowed.")
            } else {
                reply = HostReply(envelope: bytes, content: .handoff)
            }
        }
        let key = undecided.removeValue(forKey: request.id)
        if isApps, let key { memory.remember(key, request.id, reply, at: now) }
        let waiting = attempts.waiting(for: request.id)
        for attempt in waiting { self.reply(reply, to: attempt, request.id, at: now) }
        // Its client left meanwhile; it may yet come back for the answer.
        if waiting.isEmpty, isApps { actions.append(.report(.failed(request.id, request.peer, .disconnected))) }
        return actions
    }

    func rejectReply(_ appId: String?, _ reason: RejectReason, _ message: String) -> HostReply {
        for (reason, message) in [(reason, message), (reason, ""), (.denied, "")] {
            let bytes = Envelope.reject(appId: appId, reason: reason, message: message).encoded()
            guard bytes.count <= configuration.maximumEnvelope else { continue }
            return HostReply(envelope: bytes, content: .reject(reason, message: message))
        }
        // Only where the request's own appId is as long as all: it knows which it was.
        return HostReply(
            envelope: Envelope.reject(appId: nil, reason: reason, message: "").encoded(),
            content: .reject(reason, message: ""))
    }

    /// Seals an attempt's one answer and sends it on its way.
    mutating func reply(_ reply: HostReply, to attempt: ExtendedAttempt, _ join: JoinID?, at now: Instant) {
        guard attempt.sealed == nil, let sealed = attempt.channel.sealer.seal(reply.envelope) else { return }
        var attempt = attempt
        attempt.reply = reply
        attempt.sealed = sealed
        attempt.state = .answering(join)
        attempt.isUnheard = peers[attempt.peer]?.isSubscribed == false
        attempts[attempt.tag] = attempt
        send(sealed, of: attempt, at: now)
    }

    mutating func send(_ sealed: SealedMessage, of attempt: ExtendedAttempt, at now: Instant) {
        transmissions.add(
            sealed.bytes, to: attempt.peer, attempt.tag, .answer, opening: attempt.opening,
            yields: failures.failures(of: attempt.peer) > 0, at: now)
    }

    /// An attempt whose client is gone.
    mutating func abandoned(_ attempt: ExtendedAttempt, _ why: ExtendedHostFailure) -> [ExtendedHostAction] {
        switch attempt.state {
        case .deciding(let join):
            // One that can come again finds the decision made, or joins it.
            guard undecided[join] == nil, admissions.take(join) != nil else { return [] }
            return [.cancelDecision(join), .report(.failed(join, attempt.peer, why))]
        case .answering(let join):
            if let join { return failed(join, attempt, why) }
            return attempt.reply?.content != .handoff ? [] : [.report(.failed(nil, attempt.peer, why))]
        case .awaitingReceipt(let join, _):
            return failed(join, attempt, why)
        case .rejected:
            return []
        }
    }

    /// One attempt of a join has failed. The join has only if it was not delivered, and no other attempt goes on.
    private func failed(
        _ join: JoinID, _ attempt: ExtendedAttempt, _ why: ExtendedHostFailure
    ) -> [ExtendedHostAction] {
        guard !attempt.isRepeat, !attempts.all.contains(where: { $0.join == join }) else { return [] }
        return [.report(.failed(join, attempt.peer, why))]
    }

    // MARK: Sending

    mutating func advance(at now: Instant) -> [ExtendedHostAction] {
        let (peers, configuration) = (peers, configuration)
        let started = transmissions.start(at: now) { transmission in
            let budget = NotificationBudget(
                mtu: peers[transmission.peer]?.mtu ?? configuration.assumedMTU,
                mayUseMultipleNotificationPDU: configuration.mayUseMultipleNotificationPDU)
            return transmission.opening?.frameBytes(budget) ?? budget.bytes
        }
        return started.map { .notify($0.transmission.id, $0.frame, $0.transmission.peer) }
    }

    mutating func sent(_ id: TransmissionID, at now: Instant) -> [ExtendedHostAction] {
        guard let (transmission, frame) = transmissions.next(id) else { return [] }
        let (peer, attempt) = (transmission.peer, attempts[transmission.tag])
        var actions: [ExtendedHostAction] = []
        if let frame {
            actions.append(.notify(id, frame, peer))
            if attempt?.reply?.content == .handoff, let join = attempt?.join, let writer = transmission.writer {
                actions.append(
                    .report(.progress(join, peer, bytes: writer.position, of: writer.message.count)))
            }
            return actions
        }
        if case .plaintextReject(let reason, let message) = transmission.purpose {
            return [.report(.rejected(nil, peer, reason, message: message, sealed: false))]
        }
        guard let attempt, case .answering(let join) = attempt.state else { return [] }
        switch attempt.reply?.content {
        case .handoff?:
            guard let join else { return [] }
            attempts[attempt.tag]?.state = .awaitingReceipt(join, until: now + ProtocolLimits.receipt)
            return [.report(.handedOff(join, peer))]
        case .reject(let reason, let message)?:
            attempts[attempt.tag]?.state = .rejected(until: now + ProtocolLimits.lateSubscription)
            return [.report(.rejected(join, peer, reason, message: message, sealed: true))]
        case nil:
            return []
        }
    }

    // MARK: Time

    /// Everything that is due. Every input does this first, so that a late timer changes no order.
    mutating func expire(at now: Instant) -> [ExtendedHostAction] {
        var actions: [ExtendedHostAction] = []
        book.expire(at: now)
        memory.expire(at: now)
        while let key = assemblies.expired(at: now) {
            actions.append(.report(.frameRefused(key.peer, .tooSlow)))
        }
        while let transmission = transmissions.expired(at: now) {
            guard transmission.purpose == .answer, let attempt = attempts[transmission.tag] else { continue }
            attempts[transmission.tag] = nil
            guard let join = attempt.join else {
                actions.append(.report(.failed(nil, transmission.peer, .tooSlow)))
                continue
            }
            actions += failed(join, attempt, .tooSlow)
        }
        while let attempt = attempts.expired(at: now) {
            transmissions.drop { $0.tag == attempt.tag && $0.purpose == .answer }
            if case .awaitingReceipt(let join, _) = attempt.state {
                actions += failed(join, attempt, .noReceipt)
            }
        }
        while let pending = admissions.expired(at: now) {
            let (id, peer) = (pending.request.id, pending.request.peer)
            actions += [.cancelDecision(id), .report(.failed(id, peer, .admissionTimedOut))]
            actions += answer(
                pending, .reject(.timeout, message: "The host did not decide in time."), isApps: false, at: now)
        }
        return actions + advance(at: now)
    }
}
