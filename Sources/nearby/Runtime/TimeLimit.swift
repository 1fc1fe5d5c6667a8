// SPDX-License-Identifier: MIT

/// Cancels a piece of work after a while, and remembers that it did.
struct TimeLimit: Sendable {
    private let timeout: Duration?
    private let loop: CommandLoop
    private let fired = Guarded(false)

    init(_ timeout: Duration?, on loop: CommandLoop) {
        self.timeout = timeout
        self.loop = loop
    }

    var isOver: Bool { fired.withLock { $0 } }

    func run<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value {
        let work = Task(executorPreference: loop) { await body() }
        let cancelTimer = timeout.map { timeout in
            loop.schedule(after: timeout) { [fired] in
                fired.withLock { $0 = true }
                work.cancel()
            }
        }
        let value = await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
        cancelTimer?()
        return value
    }
}
