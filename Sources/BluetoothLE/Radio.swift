// SPDX-License-Identifier: MIT

/// What both roles of a radio share: its adapter and its clock.
public protocol RadioAdapter: Sendable {
    /// What this radio measures time with. Everything above it uses the same clock.
    var clock: any MonotonicClock { get }

    /// The adapter's states: the present one at once, then each change. Ends when the radio is shut down.
    ///
    /// The stream keeps the newest 16 states for a slow reader. While somebody reads it the radio follows the
    /// adapter; a radio that nobody uses holds no connection to the system.
    func adapterStatuses() -> AsyncStream<AdapterStatus>
}

/// A radio that can do both.
public protocol Radio: Central, Peripheral {}
