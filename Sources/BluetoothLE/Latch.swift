// SPDX-License-Identifier: MIT

/// A value that arrives once, for any number of tasks.
package final class Latch<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var nextWaiter = 0
        var waiters: [Int: CheckedContinuation<Value, Never>] = [:]
        var cancelled: Set<Int> = []
    }

    private let state = Locked(State())

    package var value: Value? { state.withLock { $0.value } }

    package init() {}

    /// The first call counts.
    ///
    /// - Returns: whether this was it.
    @discardableResult
    package func set(_ value: Value) -> Bool {
        let waiters = state.withLock { state -> [CheckedContinuation<Value, Never>]? in
            guard state.value == nil else { return nil }
            state.value = value
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters ?? [] { waiter.resume(returning: value) }
        return waiters != nil
    }

    /// Also where the task is cancelled.
    package func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value = state.withLock { state -> Value? in
                if let value = state.value { return value }
                state.nextWaiter += 1
                state.waiters[state.nextWaiter] = continuation
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }

    /// Gives the fallback where the task is cancelled first.
    package func value(orWhenCancelled fallback: Value) async -> Value {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        defer { state.withLock { _ = $0.cancelled.remove(waiter) } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let value = state.withLock { state -> Value? in
                    if let value = state.value { return value }
                    if state.cancelled.remove(waiter) != nil { return fallback }
                    state.waiters[waiter] = continuation
                    return nil
                }
                if let value { continuation.resume(returning: value) }
            }
        } onCancel: {
            let continuation = state.withLock { state -> CheckedContinuation<Value, Never>? in
                if let continuation = state.waiters.removeValue(forKey: waiter) { return continuation }
                if state.value == nil { state.cancelled.insert(waiter) }
                return nil
            }
            continuation?.resume(returning: fallback)
        }
    }
}
