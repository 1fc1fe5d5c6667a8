// SPDX-License-Identifier: MIT

import BluetoothLE

/// A result that one task waits for. Whoever completes it decides; cancelling only asks the medium to do so.
final class Promise<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Result<Value, BluetoothError>, Never>)
        case completed(Result<Value, BluetoothError>)
        case taken
    }

    private let state = Locked<State>(.open)

    /// The first call counts.
    func complete(_ result: Result<Value, BluetoothError>) {
        let continuation = state.withLock { state -> CheckedContinuation<Result<Value, BluetoothError>, Never>? in
            switch state {
            case .open:
                state = .completed(result)
                return nil
            case .awaited(let continuation):
                state = .taken
                return continuation
            case .completed, .taken:
                return nil
            }
        }
        continuation?.resume(returning: result)
    }

    /// - Parameter onCancel: Must see to it that the promise is completed.
    func value(onCancel: @escaping @Sendable () -> Void) async throws(BluetoothError) -> Value {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let result = state.withLock { state -> Result<Value, BluetoothError>? in
                    if case .completed(let result) = state {
                        state = .taken
                        return result
                    }
                    state = .awaited(continuation)
                    return nil
                }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            onCancel()
        }
        return try result.get()
    }
}

/// A value that arrives once, for any number of tasks.
final class Latch<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var nextWaiter = 0
        var waiters: [Int: CheckedContinuation<Value, Never>] = [:]
        var cancelled: Set<Int> = []
    }

    private let state = Locked(State())

    func set(_ value: Value) {
        let waiters = state.withLock { state -> [CheckedContinuation<Value, Never>] in
            guard state.value == nil else { return [] }
            state.value = value
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: value) }
    }

    func value(orWhenCancelled fallback: Value) async -> Value {
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
