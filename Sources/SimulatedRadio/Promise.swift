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
