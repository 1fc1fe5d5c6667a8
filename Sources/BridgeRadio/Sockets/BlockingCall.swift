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
        let isOpen = Locked(true)
        let outcome = Latch<Outcome<Value>>()
        // The first to decide is the one that counts, and knows it.
        let decide: @Sendable (Outcome<Value>) -> Bool = { new in
            let isFirst = isOpen.withLock { isOpen in
                defer { isOpen = false }
                return isOpen
            }
            if isFirst { outcome.set(new) }
            return isFirst
        }
        let hasThread = SocketSystem.startThread {
            let value = body()
            if !decide(.done(value)) { discard(value) }
        }
        guard hasThread else { return .noThread }
        let patience = Task {
            try? await Task.sleep(for: limit)
            if !Task.isCancelled { _ = decide(.late) }
        }
        defer { patience.cancel() }
        return await withTaskCancellationHandler {
            await outcome.value()
        } onCancel: {
            _ = decide(.cancelled)
        }
    }
}
