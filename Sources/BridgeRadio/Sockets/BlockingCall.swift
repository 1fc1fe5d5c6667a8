// SPDX-License-Identifier: MIT

import BluetoothLE

/// A call that blocks, on a thread of its own: the tasks' pool has only as many threads as the machine has cores.
///
/// The system's look-up of a name can neither be cancelled nor bounded. So nobody waits for it any longer than the
/// limit, and the thread ends by itself.
package enum BlockingCall {
    package enum Outcome<Value: Sendable>: Sendable {
        case done(Value)
        /// It took too long.
        case late
        case cancelled
        /// The system has none to give.
        case noThread
    }

    /// - Parameters:
    ///   - discard: What becomes of a value that nobody waits for any more.
    package static func run<Value: Sendable>(
        within limit: Duration,
        discarding discard: @escaping @Sendable (Value) -> Void,
        _ body: @escaping @Sendable () -> Value
    ) async -> Outcome<Value> {
        let outcome = Latch<Outcome<Value>>()
        let hasThread = SocketSystem.startThread {
            let value = body()
            if !outcome.set(.done(value)) { discard(value) }
        }
        guard hasThread else { return .noThread }
        let patience = Task {
            try? await Task.sleep(for: limit)
            if !Task.isCancelled { outcome.set(.late) }
        }
        defer { patience.cancel() }
        return await withTaskCancellationHandler {
            await outcome.value()
        } onCancel: {
            outcome.set(.cancelled)
        }
    }
}
