// SPDX-License-Identifier: MIT

/// The host's half of the basic profile.
///
/// Pure: each input says when it happened and returns what to do. A write is always answered in the actions of the
/// same input (`acknowledge` or `refuse`), whatever the app's decision takes. Requests are judged in the protocol's
/// order: size, parse, version, type, appId, the app, and whether the handoff fits.
///
/// Where the protocol leaves a choice:
/// - The same bytes again from a device that is being decided, or whose answer is queued, join that request. Other
///   bytes replace it: a device wants one thing at a time. After the answer has gone out, any request is a new one.
/// - A reject whose text does not fit goes out with an empty text; only if that does not fit, the write is refused.
/// - `busy` goes out at once and outside the slots, since the queue is what is full.
package struct HostMachine: Sendable {
    package let configuration: HostConfiguration

    var peers = HostPeers()
    var longWrites = LongWrites()
    var admissions = Admissions()
    var slots = NotificationSlots()
    var unconfirmed = UnconfirmedHandoffs()
    private var isStopped = false

    /// - Throws: `EnvelopeError` as `HostConfiguration.check()` does.
    package init(_ configuration: HostConfiguration) throws(EnvelopeError) {
        _ = try configuration.check()
        self.configuration = configuration
    }

    /// When `timerFired` is wanted next; nil: not at all.
    package var nextDeadline: Instant? {
        [longWrites.nextDeadline, admissions.nextDeadline, slots.nextDeadline, unconfirmed.nextDeadline]
            .compactMap { $0 }.min()
    }

    /// How many things the machine remembers; bounded by `ProtocolLimits`.
    package var footprint: Int {
        peers.count + admissions.pending.count + slots.queue.count
    }

    package mutating func centralConnected(_ peer: PeerID, at now: Instant) -> [HostAction] {
        let actions = expire(at: now)
        _ = touch(peer)
        return actions
    }

    package mutating func centralDisconnected(_ peer: PeerID, at now: Instant) -> [HostAction] {
        var actions = expire(at: now)
        peers.update(peer) { $0.unheard = nil }
        if longWrites.drop(peer) {
            actions.append(.report(.failed(nil, peer, .disconnected)))
        }
        if let pending = admissions.take(from: peer) {
            actions += [.cancelDecision(pending.request.id)]
            actions += [.report(.failed(pending.request.id, peer, .disconnected))]
        }
        if let answer = slots.withdraw(peer), answer.content != .again {
            actions.append(.report(.failed(answer.join, peer, .disconnected)))
        }
        if let handoff = unconfirmed.take(peer) {
            actions.append(delivered(handoff, .disconnected))
        }
        peers.remove(peer)
        slots.leave(peer)
        return actions + advance(at: now)
    }

    /// A device subscribed to the message characteristic.
    ///
    /// If it was answered within the last 5 s without being subscribed, it is answered again, once.
    ///
    /// - Parameters:
    ///   - peer: nil where the radio cannot tell who; then it is the only central connected, or nobody.
    ///   - mtu: the connection's ATT MTU, if the radio tells it here.
    package mutating func subscribed(_ peer: PeerID?, mtu: Int? = nil, at now: Instant) -> [HostAction] {
        var actions = expire(at: now)
        guard let peer = peer ?? peers.only, touch(peer, mtu: mtu), let state = peers[peer] else { return actions }
        peers.update(peer) {
            $0.isSubscribed = true
            $0.hasSubscribed = true
            $0.unheard = nil
        }
        guard !state.isSubscribed, let unheard = state.unheard, unheard.until > now else { return actions }
        let again = HostAnswer(peer: peer, join: nil, bytes: unheard.bytes, content: .again)
        if slots.offer(again, at: now) == .send {
            actions += send(again, at: now)
        }
        return actions + advance(at: now)
    }

    /// - Parameter peer: nil where the radio cannot tell who; then nobody is subscribed any more.
    package mutating func unsubscribed(_ peer: PeerID?, at now: Instant) -> [HostAction] {
        let actions = expire(at: now)
        if let peer {
            peers.update(peer) { $0.isSubscribed = false }
        } else {
            peers.unsubscribeAll()
        }
        return actions
    }

    /// A device wrote to the message characteristic.
    ///
    /// - Parameters:
    ///   - offset: not 0 only for the rest of a long write.
    ///   - mtu: the connection's ATT MTU now; nil: the newest that is known, or the configuration's.
    package mutating func write(
        _ request: RequestID, from peer: PeerID, _ bytes: [UInt8], offset: Int = 0, mtu: Int?, at now: Instant
    ) -> [HostAction] {
        var actions = expire(at: now)
        guard touch(peer, mtu: mtu) else {
            return actions + [
                .refuse(request, .insufficientResources), .report(.failed(nil, peer, .tooManyPeers)),
            ]
        }
        var value = bytes
        if offset == 0 {
            longWrites.drop(peer)
        } else {
            guard let whole = longWrites.appending(bytes, at: offset, from: peer) else {
                return actions + [
                    .refuse(request, .invalidOffset),
                    .report(.failed(nil, peer, .offsetWithoutStart(offset: offset))),
                ]
            }
            value = whole
        }
        if LongWrites.isPart(value), rejectFits(appId: nil, .malformed, peer) {
            longWrites.keep(value, from: peer, at: now)
            return actions + [.acknowledge(request)]
        }
        longWrites.drop(peer)
        actions += judge(value, request, from: peer, at: now)
        return actions + advance(at: now)
    }

    /// The app has decided. Ignored where its answer is no longer wanted.
    package mutating func admissionDecided(
        _ join: JoinID, _ decision: AdmissionDecision, at now: Instant
    ) -> [HostAction] {
        let actions = expire(at: now)
        guard let pending = admissions.take(join) else { return actions }
        return actions + answer(pending, decision, at: now) + advance(at: now)
    }

    package mutating func timerFired(at now: Instant) -> [HostAction] {
        expire(at: now)
    }

    /// The radio's stack went away: every peer is gone. The machine goes on when the radio is back.
    package mutating func radioReset(at now: Instant) -> [HostAction] {
        end(.radioReset, tellPeers: false, at: now)
    }

    /// Ends the session: whoever waits is told `session_ended`, and so is whoever still asks.
    package mutating func stop(at now: Instant) -> [HostAction] {
        guard !isStopped else { return [] }
        isStopped = true
        return end(.stopped, tellPeers: true, at: now)
    }
}

extension HostMachine {
    // MARK: Judging a request

    private mutating func judge(
        _ value: [UInt8], _ request: RequestID, from peer: PeerID, at now: Instant
    ) -> [HostAction] {
        let envelope: Envelope
        do throws(EnvelopeError) {
            envelope = try Envelope.decode(value, as: .host)
        } catch {
            return turnAway(error.appId, error.rejectReason, error.message, request, peer, at: now)
        }
        guard envelope.appId.hasSameBytes(as: configuration.appId) else {
            return turnAway(
                envelope.appId, .appMismatch, "This host serves another app.", request, peer, at: now)
        }
        guard !configuration.refusesBasic else {
            return turnAway(
                envelope.appId, .securityRequired, "This host does not serve the basic profile.", request, peer,
                at: now)
        }
        // Whatever is decided later must fit, and the write cannot be refused any more by then.
        let longest = RejectReason.known.max { $0.rawValue.utf8.count < $1.rawValue.utf8.count } ?? .internal
        guard rejectFits(appId: envelope.appId, longest, peer) else {
            return [.refuse(request, .answerDoesNotFit), doesNotFit(envelope.appId, longest, peer)]
        }
        if isStopped {
            return turnAway(envelope.appId, .sessionEnded, "The session has ended.", request, peer, at: now)
        }
        if admissions.of(peer)?.bytes == value || slots.queued(for: peer)?.request == value {
            return [.acknowledge(request)]
        }
        var actions: [HostAction] = [.acknowledge(request)]
        actions += dropEarlier(of: peer)
        if admissions.isFull || slots.isFull {
            actions.append(.report(.failed(nil, peer, .busy)))
            return actions + sayBusy(envelope.appId, nil, peer, at: now)
        }
        let join = admissions.add(envelope, bytes: value, from: peer, at: now)
        return actions + [.report(.requested(join.id, peer)), .decide(join)]
    }

    /// What a device asked for before it asks for something else.
    mutating func dropEarlier(of peer: PeerID) -> [HostAction] {
        var actions: [HostAction] = []
        peers.update(peer) { $0.unheard = nil }
        if let pending = admissions.take(from: peer) {
            actions.append(.cancelDecision(pending.request.id))
            actions.append(.report(.failed(pending.request.id, peer, .replaced)))
        }
        if let answer = slots.withdraw(peer), answer.content != .again {
            actions.append(.report(.failed(answer.join, peer, .replaced)))
        }
        if let handoff = unconfirmed.take(peer) {
            actions.append(.report(.failed(handoff.join, peer, .askedAgain)))
        }
        return actions
    }

    /// A request that never reaches the app.
    private mutating func turnAway(
        _ appId: String?, _ reason: RejectReason, _ message: String, _ request: RequestID, _ peer: PeerID,
        at now: Instant
    ) -> [HostAction] {
        guard rejectFits(appId: appId, reason, peer) else {
            return [.refuse(request, .answerDoesNotFit), doesNotFit(appId, reason, peer)]
        }
        let earlier = dropEarlier(of: peer)
        return [.acknowledge(request)] + earlier + reject(nil, appId, reason, message, peer, at: now)
    }

    private func doesNotFit(_ appId: String?, _ reason: RejectReason, _ peer: PeerID) -> HostAction {
        let size = Envelope.reject(appId: appId, reason: reason, message: "").encoded().count
        let budget = budget(of: peer)
        return .report(.failed(nil, peer, .rejectDoesNotFit(size: size, limit: budget.bytes, mtu: budget.mtu)))
    }

    private mutating func touch(_ peer: PeerID, mtu: Int? = nil) -> Bool {
        let (admissions, slots, unconfirmed, longWrites) = (admissions, slots, unconfirmed, longWrites)
        return peers.touch(peer, mtu: mtu) {
            admissions.of($0) != nil || slots.involves($0) || unconfirmed.contains($0) || longWrites.contains($0)
        }
    }
}
