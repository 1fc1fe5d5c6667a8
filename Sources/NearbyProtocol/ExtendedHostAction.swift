// SPDX-License-Identifier: MIT

/// One message on its way to a client. Counts up from 1 in each machine.
package struct TransmissionID: Hashable, Sendable, ExpressibleByIntegerLiteral {
    package var rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }

    package init(integerLiteral value: UInt64) {
        self.rawValue = value
    }
}

/// What whoever drives an `ExtendedHostMachine` must do, in the order given.
package enum ExtendedHostAction: Equatable, Sendable {
    /// Answer a read of hello with these bytes.
    case answer(RequestID, [UInt8])
    /// Answer a write with success.
    case acknowledge(RequestID)
    /// Answer a read or a write with an ATT error.
    case refuse(RequestID, ATTErrorCode)
    /// Ask the app; its answer comes back as `admissionDecided`.
    case decide(JoinRequest)
    /// The app's answer to this is no longer wanted.
    case cancelDecision(JoinID)
    /// Notify the channel characteristic: one notification, to this peer where the radio can aim. When the radio has
    /// taken it (or refused it), `frameSent` with the same id asks for what comes next.
    case notify(TransmissionID, [UInt8], PeerID)
    case report(ExtendedHostEvent)
}

/// What happened on a host, for logs and for the app.
package enum ExtendedHostEvent: Equatable, Sendable {
    /// A valid request for our app came in, and the app is asked.
    case requested(JoinID, PeerID)
    /// A request came again and gets the answer that there was, or will be.
    case joined(JoinID, PeerID)
    /// A request came again whose handoff was delivered before: it gets the same answer, and counts for nothing more.
    case repeated(JoinID, PeerID)
    /// So many bytes of the handoff's message have been handed to the radio; not necessarily over the air.
    case progress(JoinID, PeerID, bytes: Int, of: Int)
    /// All of the handoff was given to the radio.
    case handedOff(JoinID, PeerID)
    /// The client's receipt came; at most once for a join.
    case delivered(JoinID, PeerID)
    /// A reject was given to the radio. The id is nil where no join came of the request.
    case rejected(JoinID?, PeerID, RejectReason, message: String, sealed: Bool)
    /// A wrong passcode, or something else that did not open.
    case attemptFailed(PeerID)
    /// Wrong passcodes have used the budget up: every attempt is refused for so many seconds. The app may change the
    /// passcode.
    case underAttack(retryAfter: Int)
    /// A frame was refused, or a half message dropped.
    case frameRefused(PeerID, FrameFault)
    /// A join, or a request that never became one, came to nothing.
    case failed(JoinID?, PeerID, ExtendedHostFailure)
}

/// Why a request came to nothing on the host.
package enum ExtendedHostFailure: Equatable, Sendable {
    /// The client disconnected before its answer, or before its receipt.
    case disconnected
    /// The receipt did not come in time.
    case noReceipt
    /// The answer was not handed over in 60 s.
    case tooSlow
    /// The app did not decide in time. The client got `timeout`.
    case admissionTimedOut
    /// The handoff is over the limit. The client got `too_large`. In bytes.
    case handoffTooLarge(size: Int, limit: Int)
    /// The app's payload has keys that belong to the protocol. The client got `internal`.
    case reservedKeys
    /// Too many at a time. The client got `busy`.
    case busy
    /// The radio went away, and every peer with it.
    case radioReset
    /// The host was stopped.
    case stopped
}
