// SPDX-License-Identifier: MIT

import BluetoothLE

/// The medium's state behind one lock, with its timers and its effects.
///
/// A turn runs under the lock, and does what has come due. What it wants done to the outside (resume a task, call an
/// observer) it queues; the queue is worked off by one thread at a time, in order, without the lock.
final class MediumCore: Sendable {
    let clock: any MonotonicClock
    let activity: Activity
    private let manualClock: ManualClock?
    private let state: Locked<MediumState>

    init(clock: any MonotonicClock, seed: UInt64, conditions: Conditions) {
        self.clock = clock
        manualClock = clock as? ManualClock
        activity = manualClock?.activity ?? Activity()
        state = Locked(MediumState(now: clock.now, seed: seed, conditions: conditions))
    }

    @discardableResult
    func turn<Value, Failure: Error>(
        _ body: (inout MediumState) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        activity.note()
        defer { performEffects() }
        return try state.withLock { (state) throws(Failure) in
            state.now = clock.now
            state.runDue()
            defer {
                state.runDue()
                arm(&state)
            }
            return try body(&state)
        }
    }

    /// Under the lock: the clock's own lock is a leaf, and its callbacks run without it.
    private func arm(_ state: inout MediumState) {
        let next = state.timeline.first
        guard next != state.armed?.deadline else { return }
        state.armed?.cancel()
        state.armed = nil
        guard let next else { return }
        if let manualClock {
            let timer = manualClock.schedule(at: next) { [weak self] in self?.wake() }
            state.armed = MediumState.Alarm(deadline: next) { manualClock.cancel(timer) }
        } else {
            let clock = clock
            let task = Task { [weak self] in
                try await Self.sleep(until: next, on: clock)
                self?.wake()
            }
            state.armed = MediumState.Alarm(deadline: next) { task.cancel() }
        }
    }

    private static func sleep(until deadline: ContinuousClock.Instant, on clock: some MonotonicClock) async throws {
        try await clock.sleep(until: deadline, tolerance: nil)
    }

    private func wake() {
        turn { state in
            // The alarm has rung: a deadline that is still ahead (an early wake) needs another.
            state.armed = nil
        }
    }

    private func performEffects() {
        while true {
            let effects = state.withLock { state -> [MediumState.Effect] in
                guard !state.isPerforming, !state.effects.isEmpty else { return [] }
                state.isPerforming = true
                defer { state.effects = [] }
                return state.effects
            }
            if effects.isEmpty { return }
            for effect in effects { effect() }
            state.withLock { $0.isPerforming = false }
        }
    }
}
