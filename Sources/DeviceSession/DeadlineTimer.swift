// SPDX-License-Identifier: MIT

import BluetoothLE

/// One deadline at a time: a session has many, and sets the nearest.
struct DeadlineTimer {
    private var deadline: ContinuousClock.Instant?
    private var sleeper: Task<Void, Never>?

    /// Moves the deadline; `nil` takes it away.
    mutating func set(
        _ new: ContinuousClock.Instant?,
        on clock: any MonotonicClock,
        _ fire: @escaping @Sendable () async -> Void
    ) {
        guard new != deadline else { return }
        sleeper?.cancel()
        sleeper = nil
        deadline = new
        guard let new else { return }
        sleeper = Task {
            do { try await clock.sleep(until: new, tolerance: nil) } catch { return }
            await fire()
        }
    }

    /// The deadline has come: the next `set` starts anew.
    mutating func fired() {
        deadline = nil
        sleeper = nil
    }
}
