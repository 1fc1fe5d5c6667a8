// SPDX-License-Identifier: MIT

/// What the host machine of the extended profile needs to know before its first input.
package struct ExtendedHostConfiguration: Equatable, Sendable {
    /// The app that is served; non-empty.
    package var appId: String
    /// The session of every handoff for which the decision names no other.
    package var sessionId: String
    /// The payload of every handoff for which the decision brings no other.
    package var payload: JSONObject?
    package var profiles: HostProfiles
    /// The largest envelope either way, in bytes, 512 to 65,536; announced in hello.
    package var maximumEnvelope: Int
    /// Whether the stack may use the multiple-notification PDU; see `NotificationBudget`.
    package var mayUseMultipleNotificationPDU: Bool
    /// The ATT MTU of a peer whose radio does not tell it.
    package var assumedMTU: Int

    package init(
        appId: String, sessionId: String, payload: JSONObject? = nil, profiles: HostProfiles,
        maximumEnvelope: Int = ProtocolLimits.extendedEnvelopeBytes, mayUseMultipleNotificationPDU: Bool = true,
        assumedMTU: Int = ProtocolLimits.defaultMTU
    ) {
        self.appId = appId
        self.sessionId = sessionId
        self.payload = payload
        self.profiles = profiles
        self.maximumEnvelope = maximumEnvelope
        self.mayUseMultipleNotificationPDU = mayUseMultipleNotificationPDU
        self.assumedMTU = assumedMTU
    }

    /// Checks a configuration before anything is on the air.
    ///
    /// - Throws: `EnvelopeError` with `tooLarge` (its `size` and `limit` say by how much), or `malformed` for an
    ///   empty appId, a reserved key in the payload, or a limit out of range.
    package func check() throws(EnvelopeError) {
        guard !appId.isEmpty else { throw EnvelopeError(code: .malformed, message: "The appId is empty.") }
        let allowed = ProtocolLimits.extendedEnvelopeAtLeast...ProtocolLimits.extendedEnvelopeBytes
        guard allowed.contains(maximumEnvelope) else {
            throw EnvelopeError(
                code: .malformed,
                message: "The largest envelope has \(allowed.lowerBound) to \(allowed.upperBound) bytes.")
        }
        guard !(payload?.hasReservedKeys ?? false) else {
            throw EnvelopeError(
                code: .malformed, message: "Keys that begin with \(JSONObject.reservedPrefix) are reserved.")
        }
        let size = Envelope.handoff(appId: appId, sessionId: sessionId, payload: payload ?? [:]).encoded().count
        guard size <= maximumEnvelope else { throw .tooLarge(size: size, limit: maximumEnvelope) }
    }
}
