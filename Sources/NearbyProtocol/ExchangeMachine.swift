// SPDX-License-Identifier: MIT

/// How one attempt ended.
package enum ExchangeOutcome: Equatable, Sendable {
    case handoff(Envelope)
    case failed(ExchangeFailure)
    /// An incomplete answer; `isOurs` where what had come names our app.
    case truncated(bytes: Int, isOurs: Bool)
}

/// One attempt with one device: connect, discover, subscribe, write, answer.
///
/// Ends with one outcome, after which every input is ignored; the link is the caller's to end.
package struct ExchangeMachine: Sendable {
    package struct Step: Equatable, Sendable {
        package var actions: [ClientAction] = []
        package var outcome: ExchangeOutcome?

        package init(_ actions: [ClientAction] = [], outcome: ExchangeOutcome? = nil) {
            self.actions = actions
            self.outcome = outcome
        }

        fileprivate static func failed(_ failure: ExchangeFailure) -> Step {
            Step(outcome: .failed(failure))
        }
    }

    /// When each phase was over.
    package struct Times: Equatable, Sendable {
        package var connected: Instant?
        package var resolved: Instant?
        package var subscribed: Instant?
        package var written: Instant?
        package var answered: Instant?
    }

    /// An answer that counts only if none better comes.
    private struct Doubt: Sendable {
        let outcome: ExchangeOutcome
        let rank: Int
        let until: Instant
    }

    package let attempt: AttemptID
    package let peer: PeerID
    package private(set) var phase = ExchangePhase.connecting
    package private(set) var times = Times()
    /// Whether there may be a link to end.
    package private(set) var mayBeLinked = true

    private let request: [UInt8]
    private var phaseDeadline: Instant
    private var instances: [Int] = []
    private var assembly: AnswerAssembly
    private var doubt: Doubt?
    private var isOver = false

    package init(
        _ attempt: AttemptID, with peer: PeerID, appId: String, request: [UInt8],
        connectTimeout: Duration = ProtocolLimits.connect, at now: Instant
    ) {
        self.attempt = attempt
        self.peer = peer
        self.request = request
        assembly = AnswerAssembly(appId: appId)
        phaseDeadline = now + connectTimeout
    }

    /// Goes on where an `ExtendedExchangeMachine` ended with `useBasic`: the link is up and its services are known.
    ///
    /// - Parameter times: when the link came up; nil: now.
    package mutating func resume(instances: [Int], times: Times? = nil, at now: Instant) -> Step {
        _ = handle(.connected, at: now)
        let step = handle(.discovered(instances: instances), at: now)
        if let times { self.times = times }
        return step
    }

    package var nextDeadline: Instant? {
        if isOver { return nil }
        return [phaseDeadline, doubt?.until, assembly.deadline].compactMap { $0 }.min()
    }

    /// The outcome if nothing else comes; nil where nothing has come yet.
    package var heldOutcome: ExchangeOutcome? { doubt?.outcome }

    package mutating func handle(_ input: ExchangeInput, at now: Instant) -> Step {
        if isOver {
            if case .disconnected = input { mayBeLinked = false }
            return Step()
        }
        var step = timerFired(at: now)
        if step.outcome == nil {
            let next = take(input, at: now)
            step.actions += next.actions
            step.outcome = next.outcome
        }
        if step.outcome != nil { isOver = true }
        return step
    }

    package mutating func timerFired(at now: Instant) -> Step {
        if isOver { return Step() }
        var step = Step()
        if let doubt, doubt.until <= now {
            step = settle(doubt.outcome, at: now)
        } else if let deadline = assembly.deadline, deadline <= now {
            step = Step(outcome: truncated)
        } else if phaseDeadline <= now {
            step =
                phase == .awaitingAnswer
                ? .failed(.noAnswer) : .failed(.link(LinkFailure(.timedOut, "no end in time"), during: phase))
        }
        if step.outcome != nil { isOver = true }
        return step
    }

    private var truncated: ExchangeOutcome {
        .truncated(bytes: assembly.bytes.count, isOurs: assembly.namesOurApp)
    }

    private mutating func take(_ input: ExchangeInput, at now: Instant) -> Step {
        switch (phase, input) {
        case (.connecting, .connected):
            times.connected = now
            enter(.discovering, at: now)
            return Step([.discover(attempt)])
        case (.connecting, .connectFailed(let failure)):
            mayBeLinked = false
            return .failed(.link(failure, during: phase))
        case (.discovering, .discovered(let found)):
            guard !found.isEmpty else { return .failed(.noService) }
            times.resolved = now
            instances = Array(found.prefix(ProtocolLimits.serviceInstances))
            enter(.subscribing, at: now)
            return Step([.subscribe(attempt, instance: instances[0])])
        case (.discovering, .discoveryFailed(let failure)), (.subscribing, .subscribeFailed(let failure)),
            (.writing, .writeFailed(let failure)):
            return .failed(.link(failure, during: phase))
        case (.subscribing, .subscribed):
            times.subscribed = now
            enter(.writing, at: now)
            return Step([.write(attempt, instance: instances[0], request)])
        case (.writing, .written):
            times.written = now
            enter(.awaitingAnswer, at: now)
            return Step()
        case (.writing, .writeRefused(let code)):
            hold(.failed(.rejected(Rejection(attError: code))), rank: 3, at: now)
            return Step()
        case (.writing, .notified(let bytes, let instance)), (.awaitingAnswer, .notified(let bytes, let instance)):
            // Before our write went out, whatever is notified is for somebody else.
            if let instance, instance != instances.first { return Step() }
            return judge(bytes, at: now)
        case (_, .disconnected(let failure)):
            mayBeLinked = false
            if let doubt { return settle(doubt.outcome, at: now) }
            if !assembly.bytes.isEmpty { return Step(outcome: truncated) }
            return .failed(.link(failure, during: phase))
        default:
            return Step()
        }
    }

    private mutating func judge(_ bytes: [UInt8], at now: Instant) -> Step {
        switch assembly.append(bytes, at: now) {
        case .take(let envelope):
            times.answered = now
            return Step(outcome: .handoff(envelope))
        case .reject(let envelope):
            return settle(.failed(.rejected(Rejection(envelope))), at: now)
        case .hold(let envelope):
            hold(.failed(.rejected(Rejection(envelope))), rank: 2, at: now)
        case .malformed(let error):
            hold(.failed(.malformedAnswer(error)), rank: 1, at: now)
        case .ignore, .incomplete:
            break
        }
        return Step()
    }

    private mutating func hold(_ outcome: ExchangeOutcome, rank: Int, at now: Instant) {
        guard rank > doubt?.rank ?? 0 else { return }
        doubt = Doubt(outcome: outcome, rank: rank, until: doubt?.until ?? now + ProtocolLimits.doubtfulAnswer)
    }

    /// Ends with the outcome, or goes on with the device's next instance where this one is another app's.
    private mutating func settle(_ outcome: ExchangeOutcome, at now: Instant) -> Step {
        guard case .failed(.rejected(let rejection)) = outcome, rejection.reason == .appMismatch else {
            return Step(outcome: outcome)
        }
        guard mayBeLinked, instances.count > 1 else { return .failed(.otherApp) }
        instances.removeFirst()
        doubt = nil
        assembly.reset()
        times.written = nil
        enter(.subscribing, at: now)
        return Step([.subscribe(attempt, instance: instances[0])])
    }

    private mutating func enter(_ phase: ExchangePhase, at now: Instant) {
        self.phase = phase
        phaseDeadline = now + (phase == .awaitingAnswer ? ProtocolLimits.answer : ProtocolLimits.attStep)
    }
}

extension Rejection {
    init(_ envelope: Envelope) {
        let rejection = envelope.rejection
        self.init(reason: rejection?.reason, message: rejection?.message ?? "", payload: envelope.payload)
    }
}
