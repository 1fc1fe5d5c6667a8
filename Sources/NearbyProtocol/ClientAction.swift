// SPDX-License-Identifier: MIT

/// What a radio tells of one attempt.
package enum ExchangeInput: Equatable, Sendable {
    case connected
    case connectFailed(LinkFailure)
    /// The instances of the message characteristic, as the radio numbers them, in the device's order; empty: none.
    case discovered(instances: [Int])
    case discoveryFailed(LinkFailure)
    case subscribed
    case subscribeFailed(LinkFailure)
    case written
    case writeRefused(ATTErrorCode)
    case writeFailed(LinkFailure)
    /// - Parameter instance: nil where the radio cannot tell.
    case notified([UInt8], instance: Int? = nil)
    case disconnected(LinkFailure)
}

/// Why a step of the link failed, as the radio sees it.
package struct LinkFailure: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case timedOut
        case disconnected
        /// The device is known from a cache but is not there (any more): it must be seen again.
        case gone
        /// The service or its characteristic is not there.
        case notFound
        case other
    }

    package var kind: Kind
    package var message: String
    /// The radio's own words, for a bug report.
    package var detail: String?

    package init(_ kind: Kind, _ message: String = "", detail: String? = nil) {
        self.kind = kind
        self.message = message
        self.detail = detail
    }
}

/// Why a radio cannot be used now.
package struct RadioUnavailability: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case absent
        case poweredOff
        case unauthorized
        case unsupported
        case resetting
        case other
    }

    package var kind: Kind
    package var message: String

    package init(_ kind: Kind, _ message: String = "") {
        self.kind = kind
        self.message = message
    }
}

/// What whoever drives a `ClientMachine` must do, in the order given. Outcomes come back as `exchange` inputs with the
/// same attempt; inputs of an attempt that is over are ignored.
package enum ClientAction: Equatable, Sendable {
    case startScan
    case stopScan
    case connect(AttemptID, PeerID, timeout: Duration)
    /// Find the service's instances.
    case discover(AttemptID)
    /// Subscribe to an instance's message characteristic.
    case subscribe(AttemptID, instance: Int)
    /// Write to it, with response.
    case write(AttemptID, instance: Int, [UInt8])
    /// Read an instance's hello characteristic, all of it.
    case readHello(AttemptID, instance: Int)
    /// Subscribe to an instance's channel characteristic.
    case subscribeToChannel(AttemptID, instance: Int)
    /// Write a frame to it, with response.
    case writeToChannel(AttemptID, instance: Int, [UInt8])
    /// End the attempt's link, or its attempt to connect. A later connect to the same peer must wait until it is down.
    case disconnect(AttemptID)
    case report(ClientEvent)
    /// The result; the last but for `disconnect` and `stopScan`, and only once.
    case finish(ClientResult)
}

/// What happened on a client, for logs and for the app.
package enum ClientEvent: Equatable, Sendable {
    /// A device was met for the first time, came near, went far, or came back.
    case candidate(Candidate)
    case candidateGone(PeerID)
    case phase(AttemptID, PeerID, ExchangePhase)
    /// So many bytes of an extended answer have come; how many there will be is not known.
    case progress(AttemptID, PeerID, received: Int)
    /// An attempt came to nothing; the search goes on.
    case attemptFailed(AttemptID, PeerID, ExchangeFailure, willRetry: Bool)
    case radioUnavailable(RadioUnavailability)
    case radioAvailable
}

/// A device as an app's list shows it.
package struct Candidate: Equatable, Sendable {
    package var peer: PeerID
    /// The median in dBm; nil: not known.
    package var rssi: Int?
    package var isNear: Bool

    package init(peer: PeerID, rssi: Int?, isNear: Bool) {
        self.peer = peer
        self.rssi = rssi
        self.isNear = isNear
    }
}

package enum ExchangePhase: Equatable, Sendable {
    case connecting
    case discovering
    /// Extended only.
    case readingHello
    case subscribing
    case writing
    case awaitingAnswer
    /// Extended only: the handoff is here; the host is being told.
    case writingReceipt
}
