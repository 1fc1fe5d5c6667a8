// SPDX-License-Identifier: MIT

/// One attempt with one device in the extended profile, or up to the point where the basic one takes over: connect,
/// discover, read hello, subscribe, write, answer, receipt. A sibling of `ExchangeMachine`.
///
/// Ends with one outcome, after which every input is ignored; the link is the caller's to end. A handoff's outcome
/// waits for the receipt's write, 2 s at most, and holds whatever becomes of it.
package struct ExtendedExchangeMachine: Sendable {
    package struct Step: Equatable, Sendable {
        package var actions: [ExtendedClientAction] = []
        package var outcome: ExtendedOutcome?

        package init(_ actions: [ExtendedClientAction] = [], outcome: ExtendedOutcome? = nil) {
            self.actions = actions
            self.outcome = outcome
        }

        static func failed(_ failure: ExtendedExchangeFailure) -> Step {
            Step(outcome: .failed(failure))
        }
    }

    package typealias Times = ExchangeMachine.Times

    /// An answer that counts only if none better comes.
    struct Doubt: Sendable {
        let outcome: ExtendedOutcome
        let until: Instant
    }

    package let attempt: AttemptID
    package let peer: PeerID
    package let configuration: ExtendedClientConfiguration
    package internal(set) var phase = ExchangePhase.connecting
    package internal(set) var times = Times()
    /// Whether there may be a link to end.
    package private(set) var mayBeLinked = true
    /// How often the passcode was put to a host in this attempt; the search's sum is the caller's.
    package internal(set) var exposures = 0

    let request: [UInt8]
    let exposuresAllowed: Int
    /// After a time-out: tell the host that we take 20 bytes.
    let assumesSmallestNotifications: Bool
    let entropy: Entropy
    var phaseDeadline: Instant
    var instances: [ServiceInstance] = []
    /// Why an instance was passed over, if another reason than its app.
    var refusal: SecurityRequired?
    var hasMetOtherApp = false
    var helloReads = 0
    var subscribedInstance: Int?
    var mtu: Int?
    /// The hello that the next message 0 will build on.
    var pendingHello: Hello?
    /// What runs on top of one hello.
    var session: ExtendedClientSession?
    /// A write is on its way.
    var isWriting = false
    var handoff: ExtendedOutcome?
    var doubt: Doubt?
    private var isOver = false

    /// - Parameter exposuresAllowed: `ProtocolLimits.passcodeExposures` less what the search's earlier attempts used.
    /// - Throws: `EnvelopeError` as `ExtendedClientConfiguration.request()` does; `malformed` where libsodium does not
    ///   start.
    package init(
        _ attempt: AttemptID, with peer: PeerID, _ configuration: ExtendedClientConfiguration,
        exposuresAllowed: Int = ProtocolLimits.passcodeExposures, assumesSmallestNotifications: Bool = false,
        connectTimeout: Duration = ProtocolLimits.connect, entropy: Entropy = .system, at now: Instant
    ) throws(EnvelopeError) {
        guard Sodium.isReady else { throw EnvelopeError(code: .malformed, message: "libsodium does not start.") }
        self.init(
            attempt, with: peer, configuration, request: try configuration.request(),
            exposuresAllowed: exposuresAllowed, assumesSmallestNotifications: assumesSmallestNotifications,
            connectTimeout: connectTimeout, entropy: entropy, at: now)
    }

    /// - Parameter request: what `configuration.request()` gave; libsodium has been started.
    init(
        _ attempt: AttemptID, with peer: PeerID, _ configuration: ExtendedClientConfiguration, request: [UInt8],
        exposuresAllowed: Int, assumesSmallestNotifications: Bool, connectTimeout: Duration, entropy: Entropy = .system,
        at now: Instant
    ) {
        self.request = request
        self.attempt = attempt
        self.peer = peer
        self.configuration = configuration
        self.exposuresAllowed = exposuresAllowed
        self.assumesSmallestNotifications = assumesSmallestNotifications
        self.entropy = entropy
        phaseDeadline = now + connectTimeout
    }

    package var nextDeadline: Instant? {
        if isOver { return nil }
        return [phaseDeadline, doubt?.until].compactMap { $0 }.min()
    }

    /// The outcome if nothing else comes; nil where nothing has come yet.
    package var heldOutcome: ExtendedOutcome? { handoff ?? doubt?.outcome }

    package mutating func handle(_ input: ExtendedExchangeInput, at now: Instant) -> Step {
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
        } else if phaseDeadline <= now {
            switch phase {
            case .writingReceipt: step = Step(outcome: handoff)
            case .awaitingAnswer: step = doubt.map { settle($0.outcome, at: now) } ?? .failed(.noAnswer)
            default: step = .failed(.link(LinkFailure(.timedOut, "no end in time"), during: phase))
            }
        }
        if step.outcome != nil { isOver = true }
        return step
    }

    private mutating func take(_ input: ExtendedExchangeInput, at now: Instant) -> Step {
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
            return beginInstance(at: now)
        case (.discovering, .discoveryFailed(let failure)), (.readingHello, .helloFailed(let failure)),
            (.subscribing, .subscribeFailed(let failure)), (.writing, .writeFailed(let failure)):
            return .failed(.link(failure, during: phase))
        case (.readingHello, .helloRead(let bytes)):
            return judgeHello(bytes, at: now)
        case (.readingHello, .helloRefused(let code)):
            return .failed(.helloRefused(code))
        case (.subscribing, .subscribed(let mtu)):
            times.subscribed = now
            self.mtu = mtu
            subscribedInstance = instances.first?.id
            return writeRequest(at: now)
        case (_, .written), (_, .writeRefused), (.writingReceipt, .writeFailed):
            return wrote(input, at: now)
        case (.writing, .notified(let bytes, let instance)), (.awaitingAnswer, .notified(let bytes, let instance)):
            if let instance, instance != instances.first?.id { return Step() }
            return notified(bytes, at: now)
        case (_, .disconnected(let failure)):
            mayBeLinked = false
            if let handoff { return Step(outcome: handoff) }
            if let doubt { return settle(doubt.outcome, at: now) }
            return .failed(.link(failure, during: phase))
        default:
            return Step()
        }
    }

    mutating func hold(_ outcome: ExtendedOutcome, at now: Instant) {
        guard doubt == nil else { return }
        doubt = Doubt(outcome: outcome, until: now + ProtocolLimits.doubtfulAnswer)
    }

    /// Ends with the outcome, or reads hello again where that may help.
    private mutating func settle(_ outcome: ExtendedOutcome, at now: Instant) -> Step {
        doubt = nil
        if case .failed(.rejected(let rejection, .plaintext)) = outcome, rejection.reason == .stale, mayBeLinked,
            !isWriting, let again = readHelloAgain(at: now)
        {
            return again
        }
        return Step(outcome: outcome)
    }

    mutating func enter(_ phase: ExchangePhase, at now: Instant) {
        self.phase = phase
        let time =
            switch phase {
            case .awaitingAnswer: ProtocolLimits.answer
            case .writingReceipt: ProtocolLimits.receiptWrite
            default: ProtocolLimits.attStep
            }
        phaseDeadline = now + time
    }
}
