// SPDX-License-Identifier: MIT

/// The host's half of the extended profile, a sibling of `HostMachine`: hello and channel are its characteristics.
///
/// Pure: each input says when it happened and returns what to do. A read or a write is always answered in the actions
/// of the same input. What a device sends is judged in this order: frame, tag, length, room, `sid`, attempts left,
/// seal, then as in the basic profile. Whoever has not proved the passcode costs the host one half message, one hello
/// and one scalar multiplication, and learns only `stale`, `busy`, `malformed` or `unauthorized`.
package struct ExtendedHostMachine: Sendable {
    package private(set) var configuration: ExtendedHostConfiguration

    let entropy: Entropy
    var peers = HostPeers()
    var book = HelloBook()
    var assemblies: FrameAssemblies
    var attempts = ExtendedAttempts()
    // Ids of their own, so that a driver may keep those of both machines in one table.
    var admissions = Admissions(after: 1 << 63)
    /// The memory's key of each join that is being decided and can come again.
    var undecided: [JoinID: AnswerMemory.Key] = [:]
    var memory = AnswerMemory()
    var transmissions = Transmissions()
    var budget = AttemptBudget()
    var failures = FailureTable()
    private(set) var isStopped = false

    /// - Throws: `EnvelopeError` as `ExtendedHostConfiguration.check()` does; `malformed` too where the configuration
    ///   has no extended profile, or libsodium does not start.
    package init(
        _ configuration: ExtendedHostConfiguration, entropy: Entropy = .system
    ) throws(EnvelopeError) {
        try configuration.check()
        guard configuration.profiles.servesExtended, Sodium.isReady else {
            throw EnvelopeError(code: .malformed, message: "The extended profile is off, or libsodium does not start.")
        }
        self.configuration = configuration
        self.entropy = entropy
        assemblies = FrameAssemblies(limit: configuration.maximumEnvelope + ProtocolLimits.messageOverhead)
    }

    /// When `timerFired` is wanted next; nil: not at all.
    package var nextDeadline: Instant? {
        [
            book.nextDeadline, assemblies.nextDeadline, attempts.nextDeadline, admissions.nextDeadline,
            memory.nextDeadline, transmissions.nextDeadline,
        ].compactMap { $0 }.min()
    }

    /// How many things the machine remembers; bounded by `ProtocolLimits`.
    package var footprint: Int {
        peers.count + book.count + assemblies.count + attempts.count + admissions.pending.count + memory.count
            + transmissions.count + failures.count
    }

    /// Whether nothing is on its way to anybody: after `stop`, when whoever waited has been told.
    package var isQuiet: Bool { transmissions.count == 0 }

    package mutating func centralConnected(_ peer: PeerID, at now: Instant) -> [ExtendedHostAction] {
        let actions = expire(at: now)
        _ = touch(peer)
        return actions
    }

    package mutating func centralDisconnected(_ peer: PeerID, at now: Instant) -> [ExtendedHostAction] {
        var actions = expire(at: now)
        assemblies.drop(peer)
        book.drop(peer)
        transmissions.drop { $0.peer == peer }
        for attempt in attempts.of(peer) {
            attempts[attempt.tag] = nil
            actions += abandoned(attempt, .disconnected)
        }
        peers.remove(peer)
        return actions + advance(at: now)
    }

    /// A device subscribed to the channel characteristic; an answer that it may have missed goes out once more.
    ///
    /// - Parameters:
    ///   - peer: nil where the radio cannot tell who; then it is the only central connected, or nobody.
    ///   - mtu: the connection's ATT MTU, if the radio tells it here.
    package mutating func subscribed(_ peer: PeerID?, mtu: Int? = nil, at now: Instant) -> [ExtendedHostAction] {
        let actions = expire(at: now)
        guard let peer = peer ?? peers.only, touch(peer, mtu: mtu) else { return actions }
        peers.update(peer) { $0.isSubscribed = true }
        for attempt in attempts.of(peer) where attempt.isUnheard {
            attempts[attempt.tag]?.isUnheard = false
            guard let sealed = attempt.sealed, attempt.deadline != nil else { continue }
            send(sealed, of: attempt, at: now)
        }
        return actions + advance(at: now)
    }

    /// - Parameter peer: nil where the radio cannot tell who; then nobody is subscribed any more.
    package mutating func unsubscribed(_ peer: PeerID?, at now: Instant) -> [ExtendedHostAction] {
        let actions = expire(at: now)
        if let peer {
            peers.update(peer) { $0.isSubscribed = false }
        } else {
            peers.unsubscribeAll()
        }
        return actions
    }

    /// A device reads the hello characteristic.
    ///
    /// - Parameter offset: 0 makes a hello of this device's own; further ones read on in it.
    package mutating func readHello(
        _ request: RequestID, from peer: PeerID, offset: Int, mtu: Int?, at now: Instant
    ) -> [ExtendedHostAction] {
        let actions = expire(at: now)
        guard touch(peer, mtu: mtu) else { return actions + [.refuse(request, .insufficientResources)] }
        switch book.read(peer, offset: offset, at: now, make: makeHello) {
        case .bytes(let bytes): return actions + [.answer(request, bytes)]
        case .invalidOffset: return actions + [.refuse(request, .invalidOffset)]
        case .failed: return actions + [.refuse(request, .unlikelyError)]
        }
    }

    /// A device wrote to the channel characteristic: a frame.
    ///
    /// - Parameters:
    ///   - offset: anything but 0 is refused: a frame is never longer than one write.
    ///   - mtu: the connection's ATT MTU now; nil: the newest that is known, or the configuration's.
    ///   - mayRepeat: whether a handoff that was decided on, and has not been delivered, may go out once more; if not,
    ///     whoever asks for it again gets `busy`.
    package mutating func write(
        _ request: RequestID, from peer: PeerID, _ bytes: [UInt8], offset: Int = 0, mtu: Int?, at now: Instant,
        mayRepeat: (JoinID) -> Bool = { _ in true }
    ) -> [ExtendedHostAction] {
        var actions = expire(at: now)
        guard touch(peer, mtu: mtu) else { return actions + [.refuse(request, .insufficientResources)] }
        guard offset == 0 else { return actions + [.refuse(request, .invalidOffset)] }
        let frame: Frame
        do throws(FrameFault) {
            frame = try Frame(bytes)
        } catch {
            return actions + [.refuse(request, .frameRefused), .report(.frameRefused(peer, error))]
        }
        // Nothing in plain text under a tag that another device uses: that one would take it for its own answer.
        guard !isTag(frame.tag, inUseByOtherThan: peer) else {
            return actions + [.refuse(request, .tagInUse), .report(.frameRefused(peer, .tagInUse))]
        }
        switch assemblies.take(frame, from: peer, at: now) {
        case .incomplete:
            actions.append(.acknowledge(request))
        case .refused(let fault):
            let code: ATTErrorCode = fault == .tooManyMessages ? .insufficientResources : .frameRefused
            actions += [.refuse(request, code), .report(.frameRefused(peer, fault))]
        case .complete(let message, _):
            actions += judge(message, frame.tag, request, from: peer, at: now, mayRepeat: mayRepeat)
        }
        return actions + advance(at: now)
    }

    /// The radio has taken, or refused, the frame of a `notify`.
    package mutating func frameSent(_ id: TransmissionID, at now: Instant) -> [ExtendedHostAction] {
        let actions = expire(at: now)
        return actions + sent(id, at: now) + advance(at: now)
    }

    /// The app has decided. Ignored where its answer is no longer wanted.
    ///
    /// - Parameter isApps: false for an answer that the app was not asked for, such as `busy`: it is not remembered.
    package mutating func admissionDecided(
        _ join: JoinID, _ decision: AdmissionDecision, isApps: Bool = true, at now: Instant
    ) -> [ExtendedHostAction] {
        let actions = expire(at: now)
        guard let pending = admissions.take(join) else { return actions }
        return actions + answer(pending, decision, isApps: isApps, at: now) + advance(at: now)
    }

    package mutating func timerFired(at now: Instant) -> [ExtendedHostAction] {
        expire(at: now)
    }

    /// The radio's stack went away: every peer is gone. What was answered stays known for who comes back.
    package mutating func radioReset(at now: Instant) -> [ExtendedHostAction] {
        var actions = expire(at: now)
        for attempt in attempts.removeAll() { actions += abandoned(attempt, .radioReset) }
        transmissions.drop { _ in true }
        assemblies.removeAll()
        book.removeAll()
        peers.removeAll()
        return actions
    }

    /// Ends the session: whoever waits is told `session_ended`, and so is whoever still asks. The machine must be
    /// driven until `isQuiet`, as long as there is time.
    package mutating func stop(at now: Instant) -> [ExtendedHostAction] {
        guard !isStopped else { return [] }
        isStopped = true
        var actions = expire(at: now)
        for pending in admissions.removeAll() {
            actions += [
                .cancelDecision(pending.request.id),
                .report(.failed(pending.request.id, pending.request.peer, .stopped)),
            ]
            undecided[pending.request.id] = nil
            let reply = rejectReply(pending.request.appId, .sessionEnded, "The session has ended.")
            for attempt in attempts.waiting(for: pending.request.id) {
                self.reply(reply, to: attempt, nil, at: now)
            }
        }
        memory.removeAll()
        book.removeAll()
        return actions + advance(at: now)
    }

    /// Asks for another passcode from now on. Hellos that were read before are `stale`; attempts that have proved the
    /// old one go on, and the budget of failures stays as it is.
    package mutating func changePasscode(to passcode: Passcode, at now: Instant) -> [ExtendedHostAction] {
        let actions = expire(at: now)
        guard let profiles = try? HostProfiles(passcode: passcode) else { return actions }
        configuration.profiles = profiles
        book.removeAll()
        return actions
    }
}

extension ExtendedHostMachine {
    func isTag(_ tag: FrameTag, inUseByOtherThan peer: PeerID) -> Bool {
        (attempts[tag].map { $0.peer != peer } ?? false) || assemblies.isTag(tag, inUseByOtherThan: peer)
            || transmissions.isTag(tag, inUseByOtherThan: peer)
    }

    private func makeHello() -> (hello: Hello, scalar: SecretBytes)? {
        let sid = entropy.bytes(OpeningMessage.sidBytes)
        let scalar = Sodium.scalar(entropy)
        let secret = SecretBytes.sharedSecret(configuration.profiles.passcode)
        guard let generator = CPace.generator(passcode: secret, channel: CPace.channel, sid: sid),
            let share = CPace.share(scalar, generator: generator)
        else { return nil }
        let hello = Hello(
            flags: configuration.profiles.helloFlags, maximumEnvelope: configuration.maximumEnvelope, sid: sid,
            share: share.point)
        return (hello, scalar)
    }

    private mutating func touch(_ peer: PeerID, mtu: Int? = nil) -> Bool {
        // Made once, and only where somebody may have to go: a flood of addresses must stay cheap.
        lazy var busy = Set(attempts.all.map(\.peer))
        return peers.touch(peer, mtu: mtu) { busy.contains($0) }
    }
}
