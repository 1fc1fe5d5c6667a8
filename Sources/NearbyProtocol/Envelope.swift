// SPDX-License-Identifier: MIT

/// One message of the protocol.
///
/// Equality is that of the bytes: two texts that differ only in their Unicode form are different here.
public struct Envelope: Hashable, Sendable {
    /// What a message is.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case joinRequest = "join_request"
        case handoff
        case reject
    }

    public var type: Kind
    /// Always 1 in a message that was read.
    public var protocolVersion: Int
    /// The app that the message belongs to; compared as UTF-8 bytes. Never empty in a message that was read.
    public var appId: String
    /// The session. Always there in a handoff.
    public var sessionId: String?
    /// Always there in a handoff and a reject.
    public var payload: JSONObject?

    public init(
        type: Kind, protocolVersion: Int = ProtocolLimits.protocolVersion, appId: String, sessionId: String? = nil,
        payload: JSONObject? = nil
    ) {
        self.type = type
        self.protocolVersion = protocolVersion
        self.appId = appId
        self.sessionId = sessionId
        self.payload = payload
    }

    /// A client's request.
    public static func joinRequest(appId: String, sessionId: String? = nil, payload: JSONObject? = nil) -> Envelope {
        Envelope(type: .joinRequest, appId: appId, sessionId: sessionId, payload: payload)
    }

    /// A host's yes.
    public static func handoff(appId: String, sessionId: String, payload: JSONObject) -> Envelope {
        Envelope(type: .handoff, appId: appId, sessionId: sessionId, payload: payload)
    }

    /// A host's no.
    ///
    /// - Parameter appId: the request's, never the host's own; nil where the request's could not be read.
    public static func reject(appId: String?, reason: RejectReason, message: String) -> Envelope {
        Envelope(
            type: .reject, appId: appId ?? unknownAppId,
            payload: ["reason": .string(reason.rawValue), "message": .string(message)])
    }

    /// What a reject carries as its appId where the request's could not be read.
    public static let unknownAppId = "-"

    /// The reason and the text of a reject; nil for other messages.
    public var rejection: (reason: RejectReason, message: String)? {
        guard type == .reject, let reason = payload?.string("reason") else { return nil }
        return (RejectReason(rawValue: reason), payload?.string("message") ?? "")
    }

    public static func == (left: Envelope, right: Envelope) -> Bool {
        left.type == right.type && left.protocolVersion == right.protocolVersion
            && left.appId.hasSameBytes(as: right.appId)
            && left.sessionId.map(UTF8Key.init) == right.sessionId.map(UTF8Key.init)
            && left.payload == right.payload
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(UTF8Key(appId))
        hasher.combine(sessionId.map(UTF8Key.init))
        hasher.combine(payload)
    }
}
