// SPDX-License-Identifier: MIT

/// How a client chooses among the devices near it.
public enum HostSelection: Hashable, Sendable {
    /// The first that is near.
    case first
    /// The one with the strongest signal among those met within the time after the first near one.
    case strongest(within: Duration)
    /// The app picks.
    case manual
}

/// What a client machine needs to know before its first input.
package struct ClientConfiguration: Equatable, Sendable {
    /// The app whose handoff is wanted; non-empty.
    package var appId: String
    package var sessionId: String?
    /// The request's own payload.
    package var payload: JSONObject?
    /// The RSSI in dBm, -127 to 0, from which a device is near; nil: every device is.
    package var minimumRSSI: Int?
    package var selection: HostSelection
    /// How long the whole search may take; nil: until it is cancelled.
    package var deadline: Duration?
    /// Whether the radio reports every advertisement. Where it does not, the last reading holds until the device is
    /// gone.
    package var reportsEveryAdvertisement: Bool
    package var profiles: ClientProfiles

    package init(
        appId: String, sessionId: String? = nil, payload: JSONObject? = nil, minimumRSSI: Int? = nil,
        selection: HostSelection = .first, deadline: Duration? = ProtocolLimits.clientDeadline,
        reportsEveryAdvertisement: Bool = true, profiles: ClientProfiles = .automatic
    ) {
        self.appId = appId
        self.sessionId = sessionId
        self.payload = payload
        self.minimumRSSI = minimumRSSI
        self.selection = selection
        self.deadline = deadline
        self.reportsEveryAdvertisement = reportsEveryAdvertisement
        self.profiles = profiles
    }

    /// Checks that the request can be written in a profile that is spoken.
    ///
    /// - Throws: `EnvelopeError` as `request()` does, or as the extended profile's does where that is spoken.
    package func check() throws(EnvelopeError) {
        if profiles.choice == .basic {
            _ = try request()
        } else {
            _ = try extended().request()
        }
    }

    /// The same search in the extended profile, with a request id of its own.
    func extended() -> ExtendedClientConfiguration {
        ExtendedClientConfiguration(appId: appId, sessionId: sessionId, payload: payload, profiles: profiles)
    }

    /// The request as it is written in the basic profile.
    ///
    /// - Throws: `EnvelopeError`: `malformed` for an empty appId or a reserved key, `tooLarge` past 508 bytes.
    package func request() throws(EnvelopeError) -> [UInt8] {
        guard !appId.isEmpty else { throw EnvelopeError(code: .malformed, message: "The appId is empty.") }
        guard !(payload?.hasReservedKeys ?? false) else {
            throw EnvelopeError(
                code: .malformed, message: "Keys that begin with \(JSONObject.reservedPrefix) are reserved.")
        }
        let bytes = Envelope.joinRequest(appId: appId, sessionId: sessionId, payload: payload).encoded()
        guard bytes.count <= ProtocolLimits.clientEnvelopeBytes else {
            throw .tooLarge(size: bytes.count, limit: ProtocolLimits.clientEnvelopeBytes)
        }
        return bytes
    }
}
