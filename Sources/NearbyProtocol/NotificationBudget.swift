// SPDX-License-Identifier: MIT

/// How much of an envelope fits into one notification at a given ATT MTU.
///
/// BlueZ cuts a longer notification off without a word, so a host must know before it sends.
public struct NotificationBudget: Equatable, Sendable {
    /// The connection's ATT MTU; below 23 counts as 23.
    public var mtu: Int
    /// Whether the stack may use the multiple-notification PDU, which costs two bytes more. BlueZ may, whenever the
    /// peer has said that it can take it, and does not tell.
    public var mayUseMultipleNotificationPDU: Bool

    public init(mtu: Int, mayUseMultipleNotificationPDU: Bool = true) {
        self.mtu = max(mtu, ProtocolLimits.defaultMTU)
        self.mayUseMultipleNotificationPDU = mayUseMultipleNotificationPDU
    }

    /// The largest notification, in bytes: `min(MTU - 5, 512)`, or `min(MTU - 3, 512)` without multiple notifications.
    public var bytes: Int {
        let header =
            mayUseMultipleNotificationPDU
            ? ProtocolLimits.multipleNotificationHeader : ProtocolLimits.notificationHeader
        return min(mtu - header, ProtocolLimits.envelopeBytes)
    }

    /// The bytes left for the payload object (its braces included) of a handoff; negative where not even the
    /// envelope round it fits. The smallest payload, `{}`, takes 2.
    public func payloadBytes(appId: String, sessionId: String) -> Int {
        let empty = Envelope.handoff(appId: appId, sessionId: sessionId, payload: [:]).encoded().count
        return bytes - (empty - 2)
    }
}
