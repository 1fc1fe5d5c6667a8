// SPDX-License-Identifier: MIT

/// What a client's extended exchanges need to know; the same for all attempts of one search.
package struct ExtendedClientConfiguration: Equatable, Sendable {
    /// The app whose handoff is wanted; non-empty.
    package var appId: String
    package var sessionId: String?
    /// The request's own payload, without reserved keys.
    package var payload: JSONObject?
    package var profiles: ClientProfiles
    /// Names the request, so that a host whose answer was lost gives it again without asking its app.
    package var requestID: JoinRequestID

    package init(
        appId: String, sessionId: String? = nil, payload: JSONObject? = nil, profiles: ClientProfiles,
        requestID: JoinRequestID = JoinRequestID()
    ) {
        self.appId = appId
        self.sessionId = sessionId
        self.payload = payload
        self.profiles = profiles
        self.requestID = requestID
    }

    /// The request before it is sealed.
    ///
    /// - Throws: `EnvelopeError`: `malformed` for an empty appId or a reserved key, `tooLarge` past 65,536 bytes.
    package func request() throws(EnvelopeError) -> [UInt8] {
        guard !appId.isEmpty else { throw EnvelopeError(code: .malformed, message: "The appId is empty.") }
        var payload = payload ?? [:]
        guard !payload.hasReservedKeys else {
            throw EnvelopeError(
                code: .malformed, message: "Keys that begin with \(JSONObject.reservedPrefix) are reserved.")
        }
        payload[JoinRequestID.key] = .string(requestID.text)
        let bytes = Envelope.joinRequest(appId: appId, sessionId: sessionId, payload: payload).encoded()
        let limit = ProtocolLimits.extendedEnvelopeBytes
        guard bytes.count <= limit else { throw .tooLarge(size: bytes.count, limit: limit) }
        return bytes
    }
}
