// SPDX-License-Identifier: MIT

/// Why a host turned a request away. An open list: a reason that this version does not know is kept as it came.
public struct RejectReason: Hashable, Sendable, RawRepresentable, CustomStringConvertible {
    public var rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// The request could not be read.
    public static let malformed = RejectReason(rawValue: "malformed")
    /// The request is of a protocol version that the host does not speak.
    public static let unsupportedVersion = RejectReason(rawValue: "unsupported_version")
    /// The host serves another app.
    public static let appMismatch = RejectReason(rawValue: "app_mismatch")
    /// The host's app said no.
    public static let denied = RejectReason(rawValue: "denied")
    /// The host has too many requests at hand.
    public static let busy = RejectReason(rawValue: "busy")
    /// The request is over the limit, or the handoff does not fit the connection.
    public static let tooLarge = RejectReason(rawValue: "too_large")
    /// The passcode is wrong (extended profile).
    public static let unauthorized = RejectReason(rawValue: "unauthorized")
    /// The hello that the attempt builds on is used or expired (extended profile).
    public static let stale = RejectReason(rawValue: "stale")
    /// The host does not serve the basic profile.
    public static let securityRequired = RejectReason(rawValue: "security_required")
    /// The host has ended its session.
    public static let sessionEnded = RejectReason(rawValue: "session_ended")
    /// The host's app did not decide in time.
    public static let timeout = RejectReason(rawValue: "timeout")
    /// The host failed.
    public static let `internal` = RejectReason(rawValue: "internal")

    /// Every reason that this version knows, in the order of `shared/protocol.json`.
    public static let known: [RejectReason] = [
        .malformed, .unsupportedVersion, .appMismatch, .denied, .busy, .tooLarge, .unauthorized, .stale,
        .securityRequired, .sessionEnded, .timeout, .internal,
    ]

    public var description: String { rawValue }
}
