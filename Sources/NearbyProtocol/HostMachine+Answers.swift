// SPDX-License-Identifier: MIT

extension HostMachine {
    // MARK: What fits

    func budget(of peer: PeerID) -> NotificationBudget {
        NotificationBudget(
            mtu: peers[peer]?.mtu ?? configuration.assumedMTU,
            mayUseMultipleNotificationPDU: configuration.mayUseMultipleNotificationPDU)
    }

    /// Whether a reject fits at least without its text.
    func rejectFits(appId: String?, _ reason: RejectReason, _ peer: PeerID) -> Bool {
        Envelope.reject(appId: appId, reason: reason, message: "").encoded().count <= budget(of: peer).bytes
    }

    private func rejectBytes(
        _ appId: String?, _ reason: RejectReason, _ message: String, _ peer: PeerID
    ) -> (bytes: [UInt8], message: String)? {
        for text in [message, ""] {
            let bytes = Envelope.reject(appId: appId, reason: reason, message: text).encoded()
            if bytes.count <= budget(of: peer).bytes { return (bytes, text) }
        }
        return nil
    }

    // MARK: Answering

    /// The app's decision, as far as it fits the connection.
    mutating func answer(
        _ pending: Admissions.Pending, _ decision: AdmissionDecision, at now: Instant
    ) -> [HostAction] {
        let (request, peer) = (pending.request, pending.request.peer)
        switch decision {
        case .reject(let reason, let message):
            return reject(request.id, request.appId, reason, message, peer, pending.bytes, at: now)
        case .handoff(let payload, let sessionId):
            let envelope = Envelope.handoff(
                appId: configuration.appId, sessionId: sessionId ?? configuration.sessionId,
                payload: payload ?? configuration.payload ?? [:])
            let (bytes, budget) = (envelope.encoded(), budget(of: peer))
            guard bytes.count <= budget.bytes else {
                let failure = HostFailure.handoffTooLarge(
                    size: bytes.count, limit: budget.bytes, mtu: budget.mtu)
                let text = "The handoff has \(bytes.count) bytes, this connection carries \(budget.bytes)."
                return [.report(.failed(request.id, peer, failure))]
                    + reject(request.id, request.appId, .tooLarge, text, peer, pending.bytes, at: now)
            }
            return offer(
                HostAnswer(peer: peer, join: request.id, bytes: bytes, content: .handoff, request: pending.bytes),
                request.appId, at: now)
        }
    }

    mutating func reject(
        _ join: JoinID?, _ appId: String?, _ reason: RejectReason, _ message: String, _ peer: PeerID,
        _ request: [UInt8] = [], at now: Instant
    ) -> [HostAction] {
        var reason = reason
        var written = rejectBytes(appId, reason, message, peer)
        if written == nil {
            // A reason of the app's own can be longer than all that was checked before the write was acknowledged.
            reason = .denied
            written = rejectBytes(appId, reason, message, peer)
        }
        guard let written else { return [] }
        let content = HostAnswer.Content.reject(reason, message: written.message)
        return offer(
            HostAnswer(peer: peer, join: join, bytes: written.bytes, content: content, request: request), appId,
            at: now)
    }

    private mutating func offer(_ answer: HostAnswer, _ appId: String?, at now: Instant) -> [HostAction] {
        switch slots.offer(answer, at: now) {
        case .send: return send(answer, at: now)
        case .queued: return []
        case .full:
            return [.report(.failed(answer.join, answer.peer, .busy))]
                + sayBusy(appId, answer.join, answer.peer, at: now)
        }
    }

    mutating func sayBusy(_ appId: String?, _ join: JoinID?, _ peer: PeerID, at now: Instant) -> [HostAction] {
        guard let (bytes, message) = rejectBytes(appId, .busy, "Too many requests at a time.", peer) else { return [] }
        let content = HostAnswer.Content.reject(.busy, message: message)
        return send(HostAnswer(peer: peer, join: join, bytes: bytes, content: content), at: now)
    }

    mutating func send(_ answer: HostAnswer, at now: Instant) -> [HostAction] {
        let peer = answer.peer
        let notify = HostAction.notify(answer.bytes, peer)
        if answer.content != .again, peers[peer]?.isSubscribed == false {
            let unheard = HostPeers.Unheard(bytes: answer.bytes, until: now + ProtocolLimits.lateSubscription)
            peers.update(peer) { $0.unheard = unheard }
        }
        switch answer.content {
        case .reject(let reason, let message):
            return [notify, .report(.rejected(answer.join, peer, reason, message: message))]
        case .again:
            // What it may have missed before does not count: it has the full time again.
            if let handoff = unconfirmed.take(peer) { unconfirmed.add(handoff.join, peer, at: now) }
            return [notify, .report(.answeredAgain(peer))]
        case .handoff:
            guard let join = answer.join else { return [notify] }
            unconfirmed.add(join, peer, at: now)
            return [notify, .report(.handedOff(join, peer))]
        }
    }

    func delivered(_ handoff: UnconfirmedHandoffs.Handoff, _ evidence: Delivery.Evidence) -> HostAction {
        let seen = peers[handoff.peer]?.hasSubscribed ?? false
        return .report(.delivered(handoff.join, handoff.peer, Delivery(evidence, subscriptionSeen: seen)))
    }

    // MARK: Time

    mutating func advance(at now: Instant) -> [HostAction] {
        var actions: [HostAction] = []
        while let answer = slots.next(at: now) {
            actions += send(answer, at: now)
        }
        return actions
    }

    /// Everything that is due. Every input does this first, so that a late timer changes no order.
    mutating func expire(at now: Instant) -> [HostAction] {
        var actions: [HostAction] = []
        while let handoff = unconfirmed.expired(at: now) {
            actions.append(delivered(handoff, .waited))
        }
        while let pending = admissions.expired(at: now) {
            let (id, peer) = (pending.request.id, pending.request.peer)
            actions += [.cancelDecision(id), .report(.failed(id, peer, .admissionTimedOut))]
            actions += answer(pending, .reject(.timeout, message: "The host did not decide in time."), at: now)
        }
        while let peer = longWrites.expired(at: now) {
            actions.append(.report(.failed(nil, peer, .remainderTimedOut)))
            // Other bytes like any: what the device had asked for before is over, and has to be told as over.
            actions += dropEarlier(of: peer)
            actions += reject(nil, nil, .malformed, "The rest of the message did not come.", peer, at: now)
        }
        return actions + advance(at: now)
    }

    /// Ends everything that is going on.
    mutating func end(_ why: HostFailure, tellPeers: Bool, at now: Instant) -> [HostAction] {
        var actions = expire(at: now)
        var waiting: [(peer: PeerID, appId: String?)] = []
        for pending in admissions.removeAll() {
            actions.append(.cancelDecision(pending.request.id))
            actions.append(.report(.failed(pending.request.id, pending.request.peer, why)))
            waiting.append((pending.request.peer, pending.request.appId))
        }
        for answer in slots.removeAll() where answer.content != .again {
            if tellPeers, case .reject = answer.content {
                // Its own reason says more than the session's end.
                actions += send(answer, at: now)
            } else {
                actions.append(.report(.failed(answer.join, answer.peer, why)))
                waiting.append((answer.peer, configuration.appId))
            }
        }
        for peer in longWrites.removeAll() {
            actions.append(.report(.failed(nil, peer, why)))
            waiting.append((peer, nil))
        }
        for handoff in unconfirmed.removeAll() {
            actions.append(.report(.failed(handoff.join, handoff.peer, why)))
        }
        if tellPeers {
            for (peer, appId) in waiting {
                guard let (bytes, _) = rejectBytes(appId, .sessionEnded, "The session has ended.", peer) else {
                    continue
                }
                actions.append(.notify(bytes, peer))
            }
        } else {
            peers.removeAll()
        }
        return actions
    }
}
