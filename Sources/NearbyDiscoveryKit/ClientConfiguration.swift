// SPDX-License-Identifier: MIT

public import BluetoothLE
import NearbyProtocol

extension NearbyClient {
    /// Whom a client joins, and how.
    public struct Configuration: Sendable {
        /// Names the app. Compared byte by byte.
        public var appId: String
        /// The session to ask for; hosts may ignore it.
        public var sessionId: String?
        /// Sent along with the join request.
        public var payload: NearbyPayload?
        /// dBm, -127 to 0. Hosts whose signal is weaker are left alone; `nil`: no limit.
        ///
        /// A convenience, not a security boundary: an attacker's antenna can be as loud as it likes.
        public var minimumRSSI: Int?
        public var selection: HostSelection
        /// From the call of `join()` to its end; `nil`: until it is cancelled.
        public var timeout: Duration?
        public var whenUnavailable: UnavailablePolicy
        /// `.auto` uses the extended profile with a host that has it, else the basic one.
        public var profile: ProfileChoice
        /// With a passcode the client speaks to hosts that want one and to no others, and never basic. Without one an
        /// extended exchange is sealed, unauthenticated, and a basic one is plain text.
        public var security: NearbySecurity

        public init(
            appId: String,
            sessionId: String? = nil,
            payload: NearbyPayload? = nil,
            minimumRSSI: Int? = nil,
            selection: HostSelection = .first,
            timeout: Duration? = .seconds(30),
            whenUnavailable: UnavailablePolicy = .fail(after: .seconds(3)),
            profile: ProfileChoice = .auto,
            security: NearbySecurity = .open
        ) {
            self.appId = appId
            self.sessionId = sessionId
            self.payload = payload
            self.minimumRSSI = minimumRSSI
            self.selection = selection
            self.timeout = timeout
            self.whenUnavailable = whenUnavailable
            self.profile = profile
            self.security = security
        }
    }
}

/// A host that a client has heard.
public struct NearbyCandidate: Sendable, Hashable {
    public var peer: PeerIdentifier
    public var name: String?
    public var address: BluetoothAddress?
    /// dBm, the median of the latest readings; `nil` if there is none to be had.
    public var rssi: Int?
    /// Near enough, by the configuration's `minimumRSSI`.
    public var isNear: Bool

    public init(peer: PeerIdentifier, name: String?, address: BluetoothAddress?, rssi: Int?, isNear: Bool) {
        self.peer = peer
        self.name = name
        self.address = address
        self.rssi = rssi
        self.isNear = isNear
    }
}

/// What a client tells on its way. The list may grow: give a `switch` over it a `default`.
public enum ClientEvent: Sendable, Hashable {
    case scanning
    /// The adapter cannot be used; the join goes on by itself if it can in time.
    case unavailable(BluetoothError)
    /// The hosts in reach changed. A snapshot: it replaces the one before.
    case candidates([NearbyCandidate])
    case connecting(PeerIdentifier)
    case connected(PeerIdentifier)
    /// The join request is on its way.
    case requesting(PeerIdentifier)
    /// Extended profile: so many bytes of the sealed answer have come. How many there will be is not known.
    case progress(PeerIdentifier, bytes: Int)
    /// This host was of no use, and the search goes on: another app's, or the link failed.
    case passedOver(PeerIdentifier, reason: String)
    /// The handoff is there.
    case received(Handoff)
}
