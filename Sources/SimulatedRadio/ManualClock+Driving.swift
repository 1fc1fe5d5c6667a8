// SPDX-License-Identifier: MIT

import BluetoothLE

extension ManualClock {
    /// Lets this much time pass: stops at each instant at which something is due, and settles there.
    public func advance(by duration: Duration) async {
        await advance(to: now.advanced(by: duration))
    }

    /// Lets time pass until `instant`. An instant that is past only settles.
    public func advance(to instant: Instant) async {
        while true {
            let next = state.withLock { state in min(state.timeline.first ?? instant, instant) }
            await settle(before: next)
            // What settled may have moved the next deadline, in either direction.
            let reached = state.withLock { state -> Bool in
                let target = min(state.timeline.first ?? instant, instant)
                state.now = max(state.now, target)
                return state.now >= instant
            }
            fireDue()
            if reached, state.withLock({ state in state.timeline.first.map { $0 > state.now } ?? true }) { break }
        }
        await settle()
    }

    /// Lets time pass until the next instant at which something is due: a sleeper, or something in the medium.
    ///
    /// - Returns: `false` if nothing is due, ever; no time has passed then.
    @discardableResult
    public func advanceToNextDeadline() async -> Bool {
        guard let next = state.withLock({ $0.timeline.first }) else {
            await settle()
            return false
        }
        await settle(before: next)
        let stepped = state.withLock { state in
            guard let next = state.timeline.first else { return false }
            state.now = max(state.now, next)
            return true
        }
        fireDue()
        await settle()
        return stepped
    }

    /// Lets time pass until the next task wakes that sleeps on this clock, and settles there.
    ///
    /// - Returns: `false` if none sleeps.
    @discardableResult
    public func advanceToNextSleeper() async -> Bool {
        await settle()
        let asleep = state.withLock { Set($0.sleepers.keys) }
        guard !asleep.isEmpty else { return false }
        while state.withLock({ state in asleep.allSatisfy { state.sleepers[$0] != nil } }) {
            guard await advanceToNextDeadline() else { return false }
        }
        return true
    }

    /// Returns once at least this many tasks are asleep on this clock. No time passes.
    public func waitForSleepers(atLeast count: Int) async {
        let id = state.withLock { state in
            state.nextSleeper += 1
            return state.nextSleeper
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let enough = state.withLock { state in
                    if state.sleepers.count >= count || state.cancelled.remove(id) != nil { return true }
                    state.watchers[id] = (count, continuation)
                    return false
                }
                if enough { continuation.resume() }
            }
        } onCancel: {
            let watcher = state.withLock { state -> CheckedContinuation<Void, Never>? in
                if let watcher = state.watchers.removeValue(forKey: id) { return watcher.1 }
                state.cancelled.insert(id)
                return nil
            }
            watcher?.resume()
        }
        state.withLock { _ = $0.cancelled.remove(id) }
    }

    /// Runs an operation and lets time pass while it waits, from one deadline to the next, until it has ended.
    ///
    /// - Parameters:
    ///   - limit: How much simulated time the operation may take; then it is cancelled.
    ///   - patience: How much real time may go by in which nothing at all happens; then it is cancelled, for it waits
    ///     for something that is not simulated, or for something that will never be.
    /// - Throws: What the operation throws; `BluetoothError` with `timedOut` past a limit, if it did not end before.
    public func run<Value: Sendable>(
        limit: Duration = .seconds(3_600),
        patience: Duration = .seconds(20),
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let activity = activity
        let ended = Locked(false)
        let task = Task {
            defer {
                ended.withLock { $0 = true }
                activity.note()
            }
            return try await operation()
        }
        return try await withTaskCancellationHandler {
            let failure = await drive(until: ended, deadline: now.advanced(by: limit), patience: patience)
            if let failure {
                task.cancel()
                _ = await task.result
                throw failure
            }
            return try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    private func drive(until ended: Locked<Bool>, deadline: Instant, patience: Duration) async -> BluetoothError? {
        var lastProgress = ContinuousClock.now
        var lastCount = activity.count
        while !ended.withLock({ $0 }) {
            guard let next = state.withLock({ $0.timeline.first }) else {
                // Nothing to advance to: somebody computes, or waits for something outside.
                await settle()
                let count = activity.count
                if count != lastCount { lastProgress = .now }
                lastCount = count
                if lastProgress.duration(to: .now) > patience {
                    return BluetoothError(.timedOut, "the operation waits, but nothing is due on the clock")
                }
                try? await ContinuousClock().sleep(for: .milliseconds(1))
                continue
            }
            if next > deadline { return BluetoothError(.timedOut, "the operation took longer than its limit") }
            await settle(before: next)
            if ended.withLock({ $0 }) { break }
            state.withLock { state in
                guard let next = state.timeline.first else { return }
                state.now = max(state.now, next)
            }
            fireDue()
            lastProgress = .now
        }
        return nil
    }

    /// Returns when the process has come to rest; see the type's description.
    public func settle() async {
        await Quiescence.shared.wait(activity, quiet: settlingTime)
    }

    private func settle(before instant: Instant) async {
        // A long step is likely a time-out that nobody wants to see early.
        let isLong = now.duration(to: instant) >= .seconds(1)
        await Quiescence.shared.wait(activity, quiet: isLong ? settlingTime * 10 : settlingTime)
    }

    private func fireDue() {
        while true {
            let entry = state.withLock { state -> Entry? in
                guard let entry = state.timeline.popFirst(due: state.now)?.entry else { return nil }
                if case .sleeper(let id, _) = entry { state.sleepers[id] = nil }
                return entry
            }
            switch entry {
            case .timer(let body): body()
            case .sleeper(_, let continuation): continuation.resume(returning: true)
            case nil: return
            }
            activity.note()
        }
    }
}
