// SPDX-License-Identifier: MIT

/// A join request that the app is asked about.
package struct JoinRequest: Equatable, Sendable {
    package var id: JoinID
    package var peer: PeerID
    package var appId: String
    package var sessionId: String?
    package var payload: JSONObject?

    package init(id: JoinID, peer: PeerID, appId: String, sessionId: String? = nil, payload: JSONObject? = nil) {
        self.id = id
        self.peer = peer
        self.appId = appId
        self.sessionId = sessionId
        self.payload = payload
    }
}

/// What the app says to a join request.
package enum AdmissionDecision: Equatable, Sendable {
    /// Nil stands for the configuration's.
    case handoff(payload: JSONObject? = nil, sessionId: String? = nil)
    case reject(RejectReason = .denied, message: String = "")
}

/// What whoever drives a `HostMachine` must do, in the order given.
package enum HostAction: Equatable, Sendable {
    /// Answer a write with success.
    case acknowledge(RequestID)
    /// Answer a write with an ATT error.
    case refuse(RequestID, ATTErrorCode)
    /// Ask the app; its answer comes back as `admissionDecided`.
    case decide(JoinRequest)
    /// The app's answer to this is no longer wanted.
    case cancelDecision(JoinID)
    /// Notify the message characteristic: one notification, to this peer where the radio can aim.
    case notify([UInt8], PeerID)
    case report(HostEvent)
}

/// What happened on a host, for logs and for the app.
package enum HostEvent: Equatable, Sendable {
    /// A valid request for our app came in.
    case requested(JoinID, PeerID)
    /// The handoff's notification was given to the radio.
    case handedOff(JoinID, PeerID)
    /// A handoff counts as delivered; at most once for a join.
    case delivered(JoinID, PeerID, Delivery)
    /// A reject's notification was given to the radio. The id is nil where no join came of the request.
    case rejected(JoinID?, PeerID, RejectReason, message: String)
    /// An answer went out once more, to a device that subscribed late.
    case answeredAgain(PeerID)
    /// A join, or a request that never became one, came to nothing.
    case failed(JoinID?, PeerID, HostFailure)
}

/// What makes a handoff count as delivered. The protocol has no receipt in the basic profile.
package struct Delivery: Equatable, Sendable {
    package enum Evidence: Equatable, Sendable {
        /// The client disconnected after the notification.
        case disconnected
        /// The longest slot has passed.
        case waited
    }

    package var evidence: Evidence
    /// Whether the radio had told of a subscription of this device. A bonded device's may go untold.
    package var subscriptionSeen: Bool

    package init(_ evidence: Evidence, subscriptionSeen: Bool) {
        self.evidence = evidence
        self.subscriptionSeen = subscriptionSeen
    }
}

/// Why a request came to nothing on the host.
package enum HostFailure: Equatable, Sendable {
    /// The client disconnected before its answer.
    case disconnected
    /// The client asked for something else before it was answered; only the newer request counts.
    case replaced
    /// The client asked again after it was answered, so it had not taken the answer.
    case askedAgain
    /// The app did not decide in time. The client got `timeout`.
    case admissionTimedOut
    /// The handoff does not fit. The client got `too_large` where that fits. All figures in bytes.
    case handoffTooLarge(size: Int, limit: Int, mtu: Int)
    /// Not even a reject fits, so the write was refused with ATT 0x80. All figures in bytes.
    case rejectDoesNotFit(size: Int, limit: Int, mtu: Int)
    /// Too many at a time. The client got `busy`.
    case busy
    /// The rest of a long write did not come. The client got `malformed`.
    case remainderTimedOut
    /// Part of a long write came where none was expected; it was refused.
    case offsetWithoutStart(offset: Int)
    /// The host remembers as many peers as it may; the write was refused.
    case tooManyPeers
    /// The radio went away, and every peer with it.
    case radioReset
    /// The host was stopped.
    case stopped
}
