// SPDX-License-Identifier: MIT

/// One attempt with one device, in whichever profile it comes to: it begins as an `ExtendedExchangeMachine`, which
/// looks at what the device has, and goes on as an `ExchangeMachine` over the same link where that is basic.
struct ClientExchange: Sendable {
    enum Outcome: Equatable, Sendable {
        case handoff(Envelope, MessageSecurity)
        case failed(ExchangeFailure)
        /// An incomplete answer; `isOurs` where what had come names our app.
        case truncated(bytes: Int, isOurs: Bool)
    }

    struct Step {
        var actions: [ClientAction] = []
        var outcome: Outcome?
    }

    private enum Profile: Sendable {
        case extended(ExtendedExchangeMachine)
        case basic(ExchangeMachine)
    }

    let attempt: AttemptID
    let peer: PeerID
    /// How often the passcode was put to a host in this attempt.
    private(set) var exposures = 0

    private let configuration: ClientConfiguration
    private var profile: Profile

    init(
        _ attempt: AttemptID, with peer: PeerID, _ configuration: ClientConfiguration,
        extended: ExtendedClientConfiguration, request: [UInt8], exposuresAllowed: Int,
        assumesSmallestNotifications: Bool, connectTimeout: Duration, at now: Instant
    ) {
        self.attempt = attempt
        self.peer = peer
        self.configuration = configuration
        profile = .extended(
            ExtendedExchangeMachine(
                attempt, with: peer, extended, request: request, exposuresAllowed: exposuresAllowed,
                assumesSmallestNotifications: assumesSmallestNotifications, connectTimeout: connectTimeout, at: now))
    }

    var phase: ExchangePhase {
        switch profile {
        case .extended(let machine): machine.phase
        case .basic(let machine): machine.phase
        }
    }

    var times: ExchangeMachine.Times {
        switch profile {
        case .extended(let machine): machine.times
        case .basic(let machine): machine.times
        }
    }

    var mayBeLinked: Bool {
        switch profile {
        case .extended(let machine): machine.mayBeLinked
        case .basic(let machine): machine.mayBeLinked
        }
    }

    var nextDeadline: Instant? {
        switch profile {
        case .extended(let machine): machine.nextDeadline
        case .basic(let machine): machine.nextDeadline
        }
    }

    /// The outcome if nothing else comes; nil where nothing has come yet.
    var heldOutcome: Outcome? {
        switch profile {
        case .extended(let machine): machine.heldOutcome.flatMap { Outcome($0) }
        case .basic(let machine): machine.heldOutcome.map { Outcome($0) }
        }
    }

    mutating func handle(_ input: ExtendedExchangeInput, at now: Instant) -> Step {
        switch profile {
        case .extended(var machine):
            let step = machine.handle(input, at: now)
            return take(machine, step, at: now)
        case .basic(var machine):
            guard let input = ExchangeInput(input) else { return Step() }
            let step = machine.handle(input, at: now)
            return take(machine, step)
        }
    }

    mutating func timerFired(at now: Instant) -> Step {
        switch profile {
        case .extended(var machine):
            let step = machine.timerFired(at: now)
            return take(machine, step, at: now)
        case .basic(var machine):
            let step = machine.timerFired(at: now)
            return take(machine, step)
        }
    }

    private mutating func take(
        _ machine: ExtendedExchangeMachine, _ step: ExtendedExchangeMachine.Step, at now: Instant
    ) -> Step {
        profile = .extended(machine)
        exposures = machine.exposures
        var next = Step(actions: step.actions.map { ClientAction($0, with: peer) })
        if case .useBasic(let instances)? = step.outcome {
            let basic = goOnInBasic(instances, times: machine.times, at: now)
            next.actions += basic.actions
            next.outcome = basic.outcome
        } else {
            next.outcome = step.outcome.flatMap { Outcome($0) }
        }
        return next
    }

    private mutating func take(_ machine: ExchangeMachine, _ step: ExchangeMachine.Step) -> Step {
        profile = .basic(machine)
        return Step(actions: step.actions, outcome: step.outcome.map { Outcome($0) })
    }

    private mutating func goOnInBasic(_ instances: [Int], times: ExchangeMachine.Times, at now: Instant) -> Step {
        let request: [UInt8]
        do throws(EnvelopeError) {
            request = try configuration.request()
        } catch {
            // What was checked at start is the larger extended limit.
            let limit = ProtocolLimits.clientEnvelopeBytes
            return Step(outcome: .failed(.requestTooLarge(size: error.size ?? 0, limit: error.limit ?? limit)))
        }
        var machine = ExchangeMachine(attempt, with: peer, appId: configuration.appId, request: request, at: now)
        let step = machine.resume(instances: instances, times: times, at: now)
        return take(machine, step)
    }
}

extension ClientExchange.Outcome {
    init(_ outcome: ExchangeOutcome) {
        switch outcome {
        case .handoff(var envelope):
            envelope.payload = envelope.payload?.withoutReservedKeys
            self = .handoff(envelope, .plaintext)
        case .failed(let failure): self = .failed(failure)
        case .truncated(let bytes, let isOurs): self = .truncated(bytes: bytes, isOurs: isOurs)
        }
    }

    /// Nil for `useBasic`, which is no end.
    init?(_ outcome: ExtendedOutcome) {
        switch outcome {
        case .handoff(let envelope, let security): self = .handoff(envelope, security)
        case .failed(let failure): self = .failed(ExchangeFailure(failure))
        case .useBasic: return nil
        }
    }
}

extension ExchangeFailure {
    init(_ failure: ExtendedExchangeFailure) {
        switch failure {
        case .link(let failure, let phase): self = .link(failure, during: phase)
        case .otherApp: self = .otherApp
        case .noService: self = .noService
        case .noAnswer: self = .noAnswer
        case .hello(let error): self = .hello(error)
        case .helloRefused(let code): self = .helloRefused(code)
        case .unusableShare: self = .unusableShare
        case .securityRequired(let reason): self = .securityRequired(reason)
        case .requestTooLarge(let size, let limit): self = .requestTooLarge(size: size, limit: limit)
        case .malformedAnswer(let error): self = .malformedAnswer(error)
        case .rejected(var rejection, let security):
            rejection.security = security
            self = .rejected(rejection)
        case .passcodeExposed: self = .passcodeExposed
        }
    }
}

extension ExchangeInput {
    /// Nil for what has no meaning in the basic profile, or is known before it begins.
    init?(_ input: ExtendedExchangeInput) {
        switch input {
        case .subscribed: self = .subscribed
        case .subscribeFailed(let failure): self = .subscribeFailed(failure)
        case .written: self = .written
        case .writeRefused(let code): self = .writeRefused(code)
        case .writeFailed(let failure): self = .writeFailed(failure)
        case .notified(let bytes, let instance): self = .notified(bytes, instance: instance)
        case .disconnected(let failure): self = .disconnected(failure)
        case .connected, .connectFailed, .discovered, .discoveryFailed, .helloRead, .helloRefused, .helloFailed:
            return nil
        }
    }
}

extension ClientAction {
    init(_ action: ExtendedClientAction, with peer: PeerID) {
        switch action {
        case .discover(let attempt): self = .discover(attempt)
        case .readHello(let attempt, let instance): self = .readHello(attempt, instance: instance)
        case .subscribe(let attempt, let instance): self = .subscribeToChannel(attempt, instance: instance)
        case .write(let attempt, let instance, let frame):
            self = .writeToChannel(attempt, instance: instance, frame)
        case .progress(let attempt, let received): self = .report(.progress(attempt, peer, received: received))
        }
    }
}
