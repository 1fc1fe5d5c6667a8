// SPDX-License-Identifier: MIT

import BluetoothLE

/// One deadline at a time, on the radio's clock: a machine has many, and tells the nearest.
///
/// Only its owner's driver loop uses it, one call at a time.
struct DeadlineTimer {
    private let clock: any MonotonicClock
    private let fire: @Sendable () -> Void
    private var deadline: ContinuousClock.Instant?
    private var task: Task<Void, Never>?

    init(clock: any MonotonicClock, fire: @escaping @Sendable () -> Void) {
        self.clock = clock
        self.fire = fire
    }

    /// Moves the deadline; `nil` takes it away. Setting the same one again costs nothing.
    mutating func set(_ new: ContinuousClock.Instant?) {
        guard new != deadline else { return }
        task?.cancel()
        task = nil
        deadline = new
        guard let new else { return }
        task = Task { [clock, fire] in
            do { try await clock.sleep(until: new, tolerance: nil) } catch { return }
            fire()
        }
    }

    /// Says that the deadline has come, so that the next `set` starts anew.
    mutating func fired() {
        deadline = nil
        task = nil
    }
}
