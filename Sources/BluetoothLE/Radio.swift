// SPDX-License-Identifier: MIT

/// What both roles of a radio share: its adapter and its clock.
public protocol RadioAdapter: Sendable {
    /// What this radio measures time with. Everything above it uses the same clock.
    var clock: any MonotonicClock { get }

    /// Where this radio's events and answers come from. A task that prefers it is spared a change of threads for each of
    /// them; it must never block, since the radio stands still meanwhile. `nil`: nowhere in particular.
    var taskExecutor: (any TaskExecutor)? { get }

    /// The adapter's states: the present one at once, then each change. Ends when the radio is shut down.
    ///
    /// The stream keeps the newest 16 states for a slow reader. While somebody reads it the radio follows the
    /// adapter; a radio that nobody uses holds no connection to the system.
    func adapterStatuses() -> AsyncStream<AdapterStatus>
}

extension RadioAdapter {
    public var taskExecutor: (any TaskExecutor)? { nil }
}

/// A radio that can do both.
public protocol Radio: Central, Peripheral {}
