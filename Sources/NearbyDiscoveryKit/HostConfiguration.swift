// SPDX-License-Identifier: MIT

public import BluetoothLE
public import NearbyProtocol

extension NearbyHost {
    /// What a host serves, and how.
    public struct Configuration: Sendable {
        /// Names the app. Compared byte by byte; clients of another app are turned away.
        public var appId: String
        /// Names the session that the handoff opens; a fresh UUID by default.
        public var sessionId: String
        /// What `run()` without an admission hands to everybody, and what the size check at start is made with.
        ///
        /// An envelope that fits no profile that is served is refused then; one that only the extended profile carries
        /// is a notice, since basic clients will be told `too_large`.
        public var payload: NearbyPayload
        /// The advertised name, at most 29 bytes in UTF-8; `nil` advertises none.
        public var name: String?
        /// After so many deliveries `run` returns; `nil`: never. A client that is cut off before its receipt gives its place
        /// up, though it may have the payload already; it may come back for it as long as no other has the place.
        public var maximumHandoffs: Int?
        public var whenUnavailable: UnavailablePolicy
        /// `.auto` serves the extended profile and, unless there is a passcode, the basic one beside it.
        public var profile: ProfileChoice
        /// Without a passcode an extended exchange is sealed, unauthenticated, and a basic one is plain text.
        public var security: NearbySecurity
        /// `.refused` keeps plain text off the air without a passcode.
        public var basicProfile: BasicProfile
        /// The largest envelope of an extended exchange, either way, in bytes, 512 to 65,536. Announced to every
        /// client.
        public var maximumEnvelopeBytes: Int

        public init(
            appId: String,
            sessionId: String? = nil,
            payload: NearbyPayload = NearbyPayload(),
            name: String? = nil,
            maximumHandoffs: Int? = nil,
            whenUnavailable: UnavailablePolicy = .wait,
            profile: ProfileChoice = .auto,
            security: NearbySecurity = .open,
            basicProfile: BasicProfile = .automatic,
            maximumEnvelopeBytes: Int = ProtocolLimits.extendedEnvelopeBytes
        ) {
            self.appId = appId
            self.sessionId = sessionId ?? RandomUUID.make()
            self.payload = payload
            self.name = name
            self.maximumHandoffs = maximumHandoffs
            self.whenUnavailable = whenUnavailable
            self.profile = profile
            self.security = security
            self.basicProfile = basicProfile
            self.maximumEnvelopeBytes = maximumEnvelopeBytes
        }
    }
}

/// A client asks to join.
public struct JoinRequest: Sendable, Hashable {
    /// The client, by the radio's own name for it: good for this connection, no identity (phones change addresses).
    public var client: PeerIdentifier
    /// The session that the client asked for, if it named one.
    public var sessionId: String?
    /// What the client sent along. It is a stranger's.
    public var payload: NearbyPayload?
    /// How the request came: `.authenticated` if the client has proved that it knows the passcode.
    public var security: MessageSecurity

    public init(
        client: PeerIdentifier,
        sessionId: String? = nil,
        payload: NearbyPayload? = nil,
        security: MessageSecurity = .plaintext
    ) {
        self.client = client
        self.sessionId = sessionId
        self.payload = payload
        self.security = security
    }
}

/// The app's decision on a join request.
public enum Admission: Sendable, Hashable {
    /// Hand this over. `sessionId`: this client's own; `nil`: the host's.
    case handoff(NearbyPayload, sessionId: String? = nil)
    /// Say no. The message is for the client's user; it has to fit the client's MTU with the rest.
    case reject(RejectReason = .denied, message: String = "The host declined the request.")
}

/// What a host tells. The list may grow: give a `switch` over it a `default`.
public enum HostEvent: Sendable, Hashable {
    /// Clients can find the host. `degraded`: what the system refused, and we do without.
    case serving(sessionId: String, degraded: BluetoothError?)
    /// The adapter cannot be used, or has no room for an advertisement; the host serves again by itself when it can.
    case unavailable(BluetoothError)
    /// A client has asked, and the app is asked.
    case joinRequested(JoinRequest)
    /// Extended profile: so many bytes of the sealed handoff have been handed to the radio. They need not be over the
    /// air yet: `delivered` is the end of it.
    case progress(client: PeerIdentifier, bytes: Int, of: Int)
    /// The handoff was sent: the client has it unless its link failed that moment.
    case handedOff(client: PeerIdentifier)
    /// Basic profile: the client took the handoff and left, or 5 s passed. Extended: the client's receipt has come.
    case delivered(client: PeerIdentifier)
    /// A client was turned away.
    case rejected(client: PeerIdentifier, reason: RejectReason, message: String)
    /// An exchange ended without an answer taken: the client vanished, or its answer did not fit.
    case failed(client: PeerIdentifier, NearbyError)
    /// Wrong passcodes have used up what a host allows (20, and one more every 30 s). For so many seconds every attempt is
    /// refused, the right passcode too; then one more is allowed. The app may call `changePasscode(to:)`.
    case underAttack(retryAfter: Duration)
}
