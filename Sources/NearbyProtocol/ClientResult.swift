// SPDX-License-Identifier: MIT

/// How a search ended.
package enum ClientResult: Equatable, Sendable {
    /// The payload is without reserved keys.
    case handoff(Envelope, MessageSecurity, from: PeerID, HandoffTiming)
    case failure(ClientFailure)
}

/// When each phase of the exchange that succeeded was over, counted from the start of the search.
public struct HandoffTiming: Hashable, Sendable {
    /// The device was first seen.
    public var seen: Duration = .zero
    public var connected: Duration = .zero
    /// Its message characteristic was found.
    public var resolved: Duration = .zero
    public var subscribed: Duration = .zero
    /// The write was acknowledged, or answered before that.
    public var written: Duration = .zero
    public var answered: Duration = .zero

    public init() {}

    init(_ times: ExchangeMachine.Times, seen: Instant?, since began: Instant) {
        self.seen = (seen ?? began) - began
        connected = (times.connected ?? began) - began
        resolved = (times.resolved ?? began) - began
        subscribed = (times.subscribed ?? began) - began
        answered = (times.answered ?? began) - began
        written = times.written.map { $0 - began } ?? answered
    }
}

/// What a search met.
public struct Encounters: Hashable, Sendable {
    /// Devices with our service.
    public var seen = 0
    /// Those that never came near enough.
    public var tooFar = 0
    /// Those that serve another app.
    public var otherApp = 0
    /// Those with which every exchange failed.
    public var failed = 0

    public init(seen: Int = 0, tooFar: Int = 0, otherApp: Int = 0, failed: Int = 0) {
        self.seen = seen
        self.tooFar = tooFar
        self.otherApp = otherApp
        self.failed = failed
    }
}

/// Why one exchange came to nothing.
package enum ExchangeFailure: Equatable, Sendable {
    case link(LinkFailure, during: ExchangePhase)
    /// Every instance of the service serves another app.
    case otherApp
    /// The device advertises the service but does not have it.
    case noService
    /// No answer in time.
    case noAnswer
    /// The answer stopped before its end; `bytes` had come.
    case truncatedAnswer(bytes: Int)
    /// The answer is no message.
    case malformedAnswer(EnvelopeError)
    case rejected(Rejection)
    /// The radio went away.
    case radioLost
    /// The hello is none that we can read.
    case hello(HelloError)
    case helloRefused(ATTErrorCode)
    /// The host's share is no group element.
    case unusableShare
    case securityRequired(SecurityRequired)
    /// The request does not fit what the host takes. In bytes.
    case requestTooLarge(size: Int, limit: Int)
    /// The passcode has been tried on as many hosts as it may be in one search.
    case passcodeExposed
}

/// A host's no.
package struct Rejection: Equatable, Sendable {
    /// Nil where only an ATT error said no.
    package var reason: RejectReason?
    package var message: String
    /// The whole payload, for the reasons that carry more.
    package var payload: JSONObject?
    package var attError: ATTErrorCode?
    /// How far it can be trusted.
    package var security: MessageSecurity

    /// Nothing but a worn-out hello; the next attempt reads a fresh one.
    var isHintToAskAgain: Bool { reason == .stale && security == .plaintext }

    package init(
        reason: RejectReason? = nil, message: String = "", payload: JSONObject? = nil, attError: ATTErrorCode? = nil,
        security: MessageSecurity = .plaintext
    ) {
        self.reason = reason
        self.message = message
        self.payload = payload
        self.attError = attError
        self.security = security
    }
}

/// Why a search ended without a handoff.
package struct ClientFailure: Equatable, Sendable {
    package enum Code: Equatable, Sendable {
        /// No device with our service was met before the deadline, or none stayed until its turn.
        case nothingFound
        /// Devices were met, none near enough.
        case tooFar
        /// Every device that answered serves another app.
        case otherApp
        /// A host said no.
        case rejected(Rejection)
        /// The host did not open what was sealed with our passcode. Said in plain text, so a hint only; but a false host
        /// that said it has tested one guess, and the search does not give it more.
        case unauthorized(Rejection)
        /// The host and we do not agree on what protects the exchange; nothing was written to it.
        case securityRequired(SecurityRequired)
        /// An answer for us came incomplete.
        case truncatedAnswer(bytes: Int)
        /// Exchanges failed until the deadline; the last of them.
        case exchangeFailed(ExchangeFailure)
        /// The deadline came in the middle of an exchange.
        case timedOut(during: ExchangePhase)
        /// The app picked none of the devices (selection `.manual`).
        case nothingChosen
        case radioUnavailable(RadioUnavailability)
        case cancelled
    }

    package var code: Code
    package var counts: Encounters

    package init(_ code: Code, counts: Encounters) {
        self.code = code
        self.counts = counts
    }
}
