// SPDX-License-Identifier: MIT

/// The client's half of both profiles: from the start of the scan to the handoff.
///
/// Pure: each input says when it happened and returns what to do, in order; `finish` comes once.
///
/// - One device is tried at a time. Its first attempt is made with the scan stopped, further ones with it running:
///   some kernels need the one, some the other. Between attempts the scan runs, and other devices are tried.
/// - A device that serves another app is left out for the rest of the search, and so is one with which three
///   attempts failed or whose answer is no message.
/// - A reject for our app, an ATT error on the write and an incomplete answer that names our app end the search.
/// - A host that wants another kind of protection than we do is left out, nothing having been written to it. If it wants
///   a passcode and we have none, the search goes on for 2 s at most, so that somebody can be asked for it.
/// - A passcode is put to 5 hosts in one search at most, and after the first that does not open it to no more.
package struct ClientMachine: Sendable {
    private enum State {
        /// `started` has not come yet.
        case idle
        case searching
        case exchanging(ClientExchange)
        case finished
    }

    package let configuration: ClientConfiguration

    /// One for the whole search: a host that has answered it gives the same answer when it comes again.
    private let extended: ExtendedClientConfiguration
    private let request: [UInt8]
    /// How often the passcode was put to hosts in attempts that are over.
    private var exposures = 0
    private var refusedSecurity: SecurityRequired?
    /// When the search for a host without a passcode ends.
    private var passcodeNeeded: Instant?
    private var state = State.idle
    private var began: Instant?
    private var candidates: CandidateTable
    private var isScanning = false
    private var unavailable: RadioUnavailability?
    private var lastAttempt: UInt64 = 0
    private var lastFailure: ExchangeFailure?
    /// `.strongest`: when the window that the first near device opened closes.
    private var windowCloses: Instant?
    private var pick: PeerID?
    private var latest: Instant?

    /// - Throws: `EnvelopeError`: the request is too large for every profile that is spoken, the appId empty, a key
    ///   reserved; or libsodium does not start.
    package init(_ configuration: ClientConfiguration) throws(EnvelopeError) {
        self.configuration = configuration
        try configuration.check()
        guard Sodium.isReady else { throw EnvelopeError(code: .malformed, message: "libsodium does not start.") }
        extended = configuration.extended()
        request = try extended.request()
        candidates = CandidateTable(
            gate: RSSIGate(
                threshold: configuration.minimumRSSI,
                reportsEveryAdvertisement: configuration.reportsEveryAdvertisement))
    }

    /// When `timerFired` is wanted next; nil: not at all.
    package var nextDeadline: Instant? {
        guard began != nil, let latest else { return nil }
        switch state {
        case .idle, .finished:
            return nil
        case .searching:
            let window = windowCloses.flatMap { $0 > latest ? $0 : nil }
            let passcode = passcodeNeeded.flatMap { $0 > latest ? $0 : nil }
            return [deadline, window, passcode, candidates.nextDeadline(after: latest)].compactMap { $0 }.min()
        case .exchanging(let exchange):
            return [deadline, exchange.nextDeadline].compactMap { $0 }.min()
        }
    }

    /// How many devices the machine remembers; bounded by `ProtocolLimits.devicesSeen`.
    package var footprint: Int { candidates.count }

    private var deadline: Instant? {
        guard let began, let deadline = configuration.deadline else { return nil }
        return began + deadline
    }

    /// Starts the search; its deadline counts from here.
    package mutating func started(at now: Instant) -> [ClientAction] {
        guard case .idle = state else { return [] }
        state = .searching
        began = now
        latest = now
        return unavailable == nil ? scan(true) : []
    }

    /// A device with our service was seen, in this scan and not from a cache.
    ///
    /// - Parameter rssi: dBm; 127 or nil: not known.
    package mutating func sighted(_ peer: PeerID, rssi: Int?, at now: Instant) -> [ClientAction] {
        input(at: now) { machine in
            var active: PeerID?
            if case .exchanging(let exchange) = machine.state { active = exchange.peer }
            let news = machine.candidates.sighted(peer, rssi: rssi, at: now, keeping: active)
            return (news.map { [.report(.candidate($0))] } ?? []) + machine.proceed(at: now)
        }
    }

    /// A device is gone from the scan: it has to be seen again before it is tried. Not meant for the devices that a
    /// radio forgets because its scan was stopped.
    package mutating func gone(_ peer: PeerID, at now: Instant) -> [ClientAction] {
        input(at: now) { machine in
            machine.candidates.gone(peer) ? [.report(.candidateGone(peer))] : []
        }
    }

    /// The radio cannot be used: the scan and every link are gone. The search goes on when it is back.
    package mutating func radioUnavailable(_ reason: RadioUnavailability, at now: Instant) -> [ClientAction] {
        if case .idle = state {
            unavailable = reason
            return [.report(.radioUnavailable(reason))]
        }
        return input(at: now) { machine in
            guard machine.unavailable != reason else { return [] }
            machine.unavailable = reason
            machine.isScanning = false
            var actions: [ClientAction] = [.report(.radioUnavailable(reason))]
            if case .exchanging(let exchange) = machine.state {
                // Only the receipt was still to be written.
                if case .handoff(let envelope, let security)? = exchange.heldOutcome {
                    let timing = machine.timing(of: exchange)
                    return actions + machine.finish(.handoff(envelope, security, from: exchange.peer, timing))
                }
                machine.state = .searching
                machine.lastFailure = .radioLost
                machine.exposures += exchange.exposures
                // Not the device's fault.
                machine.candidates.update(exchange.peer) { $0.attempts -= 1 }
                actions.append(
                    .report(.attemptFailed(exchange.attempt, exchange.peer, .radioLost, willRetry: true)))
            }
            machine.candidates.allGone()
            return actions
        }
    }

    package mutating func radioAvailable(at now: Instant) -> [ClientAction] {
        if case .idle = state {
            unavailable = nil
            return []
        }
        return input(at: now) { machine in
            guard machine.unavailable != nil else { return [] }
            machine.unavailable = nil
            return [.report(.radioAvailable)] + machine.scan(true)
        }
    }

    /// What the radio tells of an attempt; ignored where that attempt is over.
    package mutating func exchange(
        _ input: ExtendedExchangeInput, _ attempt: AttemptID, at now: Instant
    ) -> [ClientAction] {
        self.input(at: now) { machine in
            guard case .exchanging(var exchange) = machine.state, exchange.attempt == attempt else { return [] }
            let phase = exchange.phase
            let step = exchange.handle(input, at: now)
            return machine.follow(exchange, step, from: phase, at: now)
        }
    }

    /// The app's pick, where the selection is `.manual`; a newer pick replaces one that is not being tried yet.
    ///
    /// A device that is not near, or not there, is tried as soon as it is.
    package mutating func chosen(_ peer: PeerID, at now: Instant) -> [ClientAction] {
        input(at: now) { machine in
            guard machine.configuration.selection == .manual else { return [] }
            machine.pick = peer
            return machine.proceed(at: now)
        }
    }

    package mutating func timerFired(at now: Instant) -> [ClientAction] {
        input(at: now) { machine in machine.proceed(at: now) }
    }

    package mutating func cancelled(at now: Instant) -> [ClientAction] {
        switch state {
        case .finished: []
        default: fail(.cancelled)
        }
    }
}

extension ClientMachine {
    /// What every input does first: what is due by now.
    private mutating func input(
        at now: Instant, _ body: (inout ClientMachine) -> [ClientAction]
    ) -> [ClientAction] {
        switch state {
        case .idle, .finished: return []
        case .searching, .exchanging: break
        }
        latest = max(latest ?? now, now)
        var actions: [ClientAction] = []
        if case .exchanging(var exchange) = state {
            let phase = exchange.phase
            let step = exchange.timerFired(at: now)
            actions += follow(exchange, step, from: phase, at: now)
        }
        if let deadline, deadline <= now { actions += deadlinePassed() }
        if case .finished = state { return actions }
        return actions + body(&self)
    }

    private mutating func scan(_ wanted: Bool) -> [ClientAction] {
        guard wanted != isScanning, unavailable == nil else { return [] }
        isScanning = wanted
        return [wanted ? .startScan : .stopScan]
    }

    // MARK: Choosing

    /// Tries the next device if there is one to try.
    private mutating func proceed(at now: Instant) -> [ClientAction] {
        guard case .searching = state, unavailable == nil else { return [] }
        if let peer = next(at: now) { return attempt(peer, at: now) }
        if let passcodeNeeded, passcodeNeeded <= now { return fail(.securityRequired(.passcodeNeeded)) }
        return []
    }

    private mutating func next(at now: Instant) -> PeerID? {
        let eligible = candidates.eligible(at: now)
        guard let first = eligible.first else { return nil }
        switch configuration.selection {
        case .first:
            return first.peer
        case .manual:
            return eligible.first { $0.peer == pick }?.peer
        case .strongest(let window):
            let closes = windowCloses ?? now + window
            windowCloses = closes
            guard closes <= now else { return nil }
            let fewest = eligible.prefix { $0.attempts == first.attempts }
            return fewest.max { left, right in
                let (a, b) = (left.gate.median(at: now) ?? -128, right.gate.median(at: now) ?? -128)
                return a == b ? left.order > right.order : a < b
            }?.peer
        }
    }

    private mutating func attempt(_ peer: PeerID, at now: Instant) -> [ClientAction] {
        var number = 1
        let assumesSmallest = candidates[peer]?.assumesSmallestNotifications ?? false
        candidates.update(peer) { record in
            record.attempts += 1
            record.pausedUntil = nil
            number = record.attempts
        }
        lastAttempt += 1
        let id = AttemptID(lastAttempt)
        let left = deadline.map { $0 - now } ?? ProtocolLimits.connect
        let timeout = min(ProtocolLimits.connect, left)
        let exchange = ClientExchange(
            id, with: peer, configuration, extended: extended, request: request,
            exposuresAllowed: max(0, ProtocolLimits.passcodeExposures - exposures),
            assumesSmallestNotifications: assumesSmallest, connectTimeout: timeout, at: now)
        state = .exchanging(exchange)
        return scan(number > 1) + [
            .connect(id, peer, timeout: timeout), .report(.phase(id, peer, .connecting)),
        ]
    }

    // MARK: Following an exchange

    private mutating func follow(
        _ exchange: ClientExchange, _ step: ClientExchange.Step, from phase: ExchangePhase, at now: Instant
    ) -> [ClientAction] {
        state = .exchanging(exchange)
        var actions = step.actions
        if exchange.phase != phase {
            actions.append(.report(.phase(exchange.attempt, exchange.peer, exchange.phase)))
        }
        guard let outcome = step.outcome else { return actions }
        exposures += exchange.exposures
        switch outcome {
        case .handoff(let envelope, let security):
            return actions + finish(.handoff(envelope, security, from: exchange.peer, timing(of: exchange)))
        case .failed(.rejected(let rejection)) where rejection.isHintToAskAgain:
            return actions + giveUp(exchange, .rejected(rejection), at: now)
        case .failed(.rejected(let rejection)):
            candidates.update(exchange.peer) { $0.hasFailed = true }
            return actions + fail(code(of: rejection))
        case .failed(.passcodeExposed):
            candidates.update(exchange.peer) { $0.hasFailed = true }
            return actions + fail(.exchangeFailed(.passcodeExposed))
        case .truncated(let bytes, true):
            candidates.update(exchange.peer) { $0.hasFailed = true }
            return actions + fail(.truncatedAnswer(bytes: bytes))
        case .truncated(let bytes, false):
            return actions + giveUp(exchange, .truncatedAnswer(bytes: bytes), at: now)
        case .failed(let failure):
            return actions + giveUp(exchange, failure, at: now)
        }
    }

    /// An attempt came to nothing: the search goes on.
    private mutating func giveUp(
        _ exchange: ClientExchange, _ failure: ExchangeFailure, at now: Instant
    ) -> [ClientAction] {
        state = .searching
        let peer = exchange.peer
        var willRetry = false
        candidates.update(peer) { record in
            switch failure {
            case .otherApp:
                record.fate = .otherApp
            case .truncatedAnswer, .malformedAnswer, .hello, .unusableShare, .securityRequired, .requestTooLarge,
                .passcodeExposed:
                record.fate = .failed
            case .link, .noService, .noAnswer, .radioLost, .helloRefused, .rejected:
                record.hasFailed = true
                if failure == .noAnswer { record.assumesSmallestNotifications = true }
                willRetry = record.attempts < ProtocolLimits.attemptsPerDevice
                if willRetry {
                    record.pausedUntil = now + ProtocolLimits.firstRetryPause * (1 << (record.attempts - 1))
                } else {
                    record.fate = .failed
                }
            }
        }
        if failure != .otherApp { lastFailure = failure }
        if case .securityRequired(let reason) = failure {
            refusedSecurity = refusedSecurity ?? reason
            if reason == .passcodeNeeded, passcodeNeeded == nil { passcodeNeeded = now + ProtocolLimits.passcodeNeeded }
        }
        if case .link(let link, _) = failure, link.kind == .gone { _ = candidates.gone(peer) }
        if !willRetry, pick == peer { pick = nil }
        var actions: [ClientAction] = exchange.mayBeLinked ? [.disconnect(exchange.attempt)] : []
        actions.append(.report(.attemptFailed(exchange.attempt, peer, failure, willRetry: willRetry)))
        // The one that was asked for: somebody waits for the word.
        if case .securityRequired(let reason) = failure, configuration.selection == .manual {
            return actions + fail(.securityRequired(reason))
        }
        let next = proceed(at: now)
        return actions + (next.isEmpty ? scan(true) : next)
    }

    private func code(of rejection: Rejection) -> ClientFailure.Code {
        let isPasscodes = rejection.reason == .unauthorized && configuration.profiles.passcode != nil
        return isPasscodes ? .unauthorized(rejection) : .rejected(rejection)
    }

    private func timing(of exchange: ClientExchange) -> HandoffTiming {
        guard let began else { return HandoffTiming() }
        return HandoffTiming(exchange.times, seen: candidates[exchange.peer]?.firstSeen, since: began)
    }

    // MARK: The end

    private mutating func deadlinePassed() -> [ClientAction] {
        if case .exchanging(let exchange) = state {
            if case .handoff(let envelope, let security)? = exchange.heldOutcome {
                return finish(.handoff(envelope, security, from: exchange.peer, timing(of: exchange)))
            }
            if case .failed(.rejected(let rejection))? = exchange.heldOutcome, rejection.reason != .appMismatch {
                return fail(code(of: rejection))
            }
            candidates.update(exchange.peer) { $0.hasFailed = true }
            return fail(.timedOut(during: exchange.phase))
        }
        if let unavailable { return fail(.radioUnavailable(unavailable)) }
        let counts = candidates.counts
        if counts.seen == 0 { return fail(.nothingFound) }
        if let refusedSecurity { return fail(.securityRequired(refusedSecurity)) }
        if counts.failed > 0, let lastFailure { return fail(.exchangeFailed(lastFailure)) }
        if counts.otherApp > 0 { return fail(.otherApp) }
        if counts.tooFar == counts.seen { return fail(.tooFar) }
        // Nothing that is the device's fault: the radio went, or it left before its turn came.
        if let lastFailure { return fail(.exchangeFailed(lastFailure)) }
        return fail(configuration.selection == .manual ? .nothingChosen : .nothingFound)
    }

    private mutating func fail(_ code: ClientFailure.Code) -> [ClientAction] {
        finish(.failure(ClientFailure(code, counts: candidates.counts)))
    }

    /// The result first: ending a link takes bluetoothd two seconds.
    private mutating func finish(_ result: ClientResult) -> [ClientAction] {
        var actions: [ClientAction] = [.finish(result)]
        if case .exchanging(let exchange) = state, exchange.mayBeLinked {
            actions.append(.disconnect(exchange.attempt))
        }
        actions += scan(false)
        state = .finished
        return actions
    }
}
