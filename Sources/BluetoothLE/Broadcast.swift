// SPDX-License-Identifier: MIT

/// Gives each value to every stream that was asked for, each with a buffer that keeps the newest.
package final class Broadcast<Value: Sendable>: Sendable {
    private struct State {
        var lastID = 0
        var readers: [Int: AsyncStream<Value>.Continuation] = [:]
        var isFinished = false
    }

    private let state = Locked(State())
    private let limit: Int
    private let readerLimit: Int

    /// - Parameters:
    ///   - limit: How many values wait for a slow reader; the newest stay.
    ///   - readers: How many streams there may be; one more ends at once.
    package init(keeping limit: Int, readers: Int) {
        self.limit = limit
        readerLimit = readers
    }

    /// - Parameter first: What the stream begins with.
    package func stream(startingWith first: Value? = nil) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(limit))
        let id: Int? = state.withLock { state in
            guard !state.isFinished, state.readers.count < readerLimit else { return nil }
            state.lastID += 1
            state.readers[state.lastID] = continuation
            return state.lastID
        }
        if let first { continuation.yield(first) }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { state in _ = state.readers.removeValue(forKey: id) }
        }
        return stream
    }

    package func send(_ value: Value) {
        for reader in state.withLock({ Array($0.readers.values) }) { reader.yield(value) }
    }

    /// Ends every stream. What is sent later is dropped.
    package func finish() {
        let readers = state.withLock { state in
            defer {
                state.readers = [:]
                state.isFinished = true
            }
            return Array(state.readers.values)
        }
        for reader in readers { reader.finish() }
    }
}
