// SPDX-License-Identifier: MIT

/// What a session is doing.
public enum SessionState: Sendable, Hashable {
    case idle
    case scanning
    /// For the first time, or again after a loss.
    case connecting
    /// There is a link. What can be done over it is what the gates say.
    case connected
    /// It came to nothing; the session may scan or connect again, unless the error is `tornDown`.
    case failed(DeviceSessionError)
}

/// What can be waited for.
public enum SessionGate: Sendable, Hashable, CaseIterable {
    /// There is a link.
    case connected
    /// The profile's characteristics have been found, and notifications are on: commands may be sent.
    case commandReady
    /// The device facts have been read, as far as the device has any.
    case deviceInfoReady
}
