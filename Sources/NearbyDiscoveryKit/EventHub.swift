// SPDX-License-Identifier: MIT

import BluetoothLE

/// Gives each event to every reader, through a stream of its own with a bounded buffer.
final class EventHub<Event: Sendable>: Sendable {
    private struct State {
        var nextID = 0
        var readers: [Int: AsyncStream<Event>.Continuation] = [:]
        var isFinished = false
    }

    private let state = Locked(State())

    /// A stream of the events from now on. Keeps the newest `Limits.events` for a slow reader.
    func stream() -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Event.self,
            bufferingPolicy: .bufferingNewest(Limits.events)
        )
        let id: Int? = state.withLock { state in
            guard !state.isFinished, state.readers.count < Limits.eventReaders else { return nil }
            state.nextID += 1
            state.readers[state.nextID] = continuation
            return state.nextID
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { state in _ = state.readers.removeValue(forKey: id) }
        }
        return stream
    }

    func send(_ event: Event) {
        for reader in state.withLock({ Array($0.readers.values) }) { reader.yield(event) }
    }

    /// Ends every stream. Events sent later are dropped.
    func finish() {
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
