// SPDX-License-Identifier: MIT

/// What a host machine needs to know before its first input.
package struct HostConfiguration: Equatable, Sendable {
    /// The app that is served; non-empty.
    package var appId: String
    /// The session of every handoff for which the decision names no other.
    package var sessionId: String
    /// The payload of every handoff for which the decision brings no other. Only this one can be checked at start.
    package var payload: JSONObject?
    /// Whether the stack may use the multiple-notification PDU; see `NotificationBudget`.
    package var mayUseMultipleNotificationPDU: Bool
    /// The ATT MTU of a peer whose radio does not tell it. The default is the only one that cuts nothing off: a host
    /// then refuses every write with ATT 0x80, so a radio that does not tell should say here what it guarantees.
    package var assumedMTU: Int
    /// Whether every request is answered `security_required`: the host serves the extended profile only.
    package var refusesBasic: Bool

    package init(
        appId: String, sessionId: String, payload: JSONObject? = nil, mayUseMultipleNotificationPDU: Bool = true,
        assumedMTU: Int = ProtocolLimits.defaultMTU, refusesBasic: Bool = false
    ) {
        self.appId = appId
        self.sessionId = sessionId
        self.payload = payload
        self.mayUseMultipleNotificationPDU = mayUseMultipleNotificationPDU
        self.assumedMTU = assumedMTU
        self.refusesBasic = refusesBasic
    }

    /// What works, but perhaps not with everybody.
    package enum Warning: Equatable, Sendable {
        /// Today's mobile peers read only strings.
        case valueIsNotAString(key: String)
        /// The handoff is longer than what a usual iPhone takes. `needsMTU` is the smallest ATT MTU that carries it.
        case longEnvelope(bytes: Int, comfortable: Int, needsMTU: Int)
    }

    /// Checks a configuration before anything is on the air.
    ///
    /// - Returns: what to warn about.
    /// - Throws: `EnvelopeError` with `tooLarge` (its `size` and `limit` say by how much), or `malformed` for an
    ///   empty appId.
    package func check() throws(EnvelopeError) -> [Warning] {
        guard !appId.isEmpty else { throw EnvelopeError(code: .malformed, message: "The appId is empty.") }
        // No handoff goes out here.
        if refusesBasic { return [] }
        var warnings: [Warning] = []
        for (key, value) in payload ?? [:] where value.string == nil {
            warnings.append(.valueIsNotAString(key: key))
        }
        let size = Envelope.handoff(appId: appId, sessionId: sessionId, payload: payload ?? [:]).encoded().count
        guard size <= ProtocolLimits.envelopeBytes else {
            throw .tooLarge(size: size, limit: ProtocolLimits.envelopeBytes)
        }
        if size > ProtocolLimits.comfortableEnvelopeBytes {
            let header =
                mayUseMultipleNotificationPDU
                ? ProtocolLimits.multipleNotificationHeader : ProtocolLimits.notificationHeader
            warnings.append(
                .longEnvelope(
                    bytes: size, comfortable: ProtocolLimits.comfortableEnvelopeBytes, needsMTU: size + header))
        }
        return warnings
    }
}
