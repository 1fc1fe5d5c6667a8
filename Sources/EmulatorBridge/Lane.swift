// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

/// Commands that have to be done one after another: those of one link, of one advertisement, of the scan.
final class Lane: Sendable {
    typealias Body = @Sendable () async -> Void

    private struct State {
        /// Bodies that have not ended.
        var count = 0
        var waiter: CheckedContinuation<Void, Never>?
        var isAbandoned = false
    }

    private let bodies: AsyncStream<Body>.Continuation
    private let worker: Task<Void, Never>
    private let state: Locked<State>
    private let limit: Int

    init(limit: Int = Limits.queuedCommands) {
        let (stream, continuation) = AsyncStream.makeStream(of: Body.self, bufferingPolicy: .bufferingOldest(limit))
        let state = Locked(State())
        bodies = continuation
        self.state = state
        self.limit = limit
        worker = Task {
            for await body in stream {
                await body()
                let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
                    state.count -= 1
                    guard state.count <= limit / 2 else { return nil }
                    defer { state.waiter = nil }
                    return state.waiter
                }
                waiter?.resume()
            }
        }
    }

    deinit { bodies.finish() }

    /// - Returns: false where too many wait, or the lane is closed.
    func enqueue(_ body: @escaping Body) -> Bool {
        state.withLock { $0.count += 1 }
        if case .enqueued = bodies.yield(body) { return true }
        state.withLock { $0.count -= 1 }
        return false
    }

    var isFull: Bool { state.withLock { $0.count >= limit } }

    /// Waits until half of the lane is free, if it is full, or until it is abandoned. For one at a time.
    func room() async {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                guard state.count >= limit, state.waiter == nil, !state.isAbandoned else { return false }
                state.waiter = continuation
                return true
            }
            if !mustWait { continuation.resume() }
        }
    }

    /// Nobody is to wait for room any more.
    func abandon() {
        state.withLock { state in
            state.isAbandoned = true
            defer { state.waiter = nil }
            return state.waiter
        }?.resume()
    }

    /// What is in the lane is still done, and nothing more.
    func close() { bodies.finish() }

    /// Waits until the lane is closed and empty.
    func end() async { await worker.value }
}

/// One command under way, or in line.
final class Operation: Sendable {
    private struct State {
        var isCancelled = false
        var task: Task<Void, Never>?
    }

    private let state = Locked(State())

    /// Runs the body in a task that `cancel` cancels, also where that came first.
    func run(_ body: @escaping @Sendable () async -> Void) async {
        let task = Task { await body() }
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
        await task.value
        state.withLock { $0.task = nil }
    }

    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            return state.task
        }?.cancel()
    }
}
