// SPDX-License-Identifier: MIT

public import BluetoothLE
public import NearbyProtocol

/// A handoff as the client received it.
public struct NearbyMessage: Sendable, Hashable {
    /// `"handoff"`.
    public var type: String
    public var protocolVersion: Int
    public var appId: String
    public var sessionId: String?
    public var payload: NearbyPayload?

    public init(
        type: String = "handoff",
        protocolVersion: Int = 1,
        appId: String,
        sessionId: String?,
        payload: NearbyPayload?
    ) {
        self.type = type
        self.protocolVersion = protocolVersion
        self.appId = appId
        self.sessionId = sessionId
        self.payload = payload
    }
}

/// What a client gets from a successful join.
public struct Handoff: Sendable, Hashable {
    public var message: NearbyMessage
    /// The host, by the radio's own name for it.
    public var peer: PeerIdentifier
    public var timing: HandoffTiming
    /// How far it can be trusted: `.authenticated` with a passcode, `.sealed` (and unauthenticated) from a host of ours
    /// without one, `.plaintext` from a basic host.
    public var security: MessageSecurity

    public init(
        message: NearbyMessage,
        peer: PeerIdentifier,
        timing: HandoffTiming,
        security: MessageSecurity = .plaintext
    ) {
        self.message = message
        self.peer = peer
        self.timing = timing
        self.security = security
    }

    /// The payload; empty if the host sent an empty one.
    public var payload: NearbyPayload { message.payload ?? NearbyPayload() }
}
