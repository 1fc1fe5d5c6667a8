// SPDX-License-Identifier: MIT

/// One deadline at a time, on the radio's clock: a machine has many, and tells the nearest.
///
/// Only its owner uses it, one call at a time.
package struct DeadlineTimer {
    private let clock: any MonotonicClock
    private let executor: (any TaskExecutor)?
    private let fire: @Sendable () async -> Void
    private var deadline: ContinuousClock.Instant?
    private var sleeper: Task<Void, Never>?

    /// - Parameters:
    ///   - executor: where the clock's sleeper waits; on the radio's it needs no other thread.
    ///   - fire: runs there, too, so it must not call the app.
    package init(
        clock: any MonotonicClock, executor: (any TaskExecutor)? = nil, fire: @escaping @Sendable () async -> Void
    ) {
        self.clock = clock
        self.executor = executor
        self.fire = fire
    }

    /// Moves the deadline; `nil` takes it away. Setting the same one again costs nothing.
    package mutating func set(_ new: ContinuousClock.Instant?) {
        guard new != deadline else { return }
        sleeper?.cancel()
        sleeper = nil
        deadline = new
        guard let new else { return }
        sleeper = Task(executorPreference: executor) { [clock, fire] in
            do { try await clock.sleep(until: new, tolerance: nil) } catch { return }
            await fire()
        }
    }

    /// Says that the deadline has come, so that the next `set` starts anew.
    package mutating func fired() {
        deadline = nil
        sleeper = nil
    }
}
