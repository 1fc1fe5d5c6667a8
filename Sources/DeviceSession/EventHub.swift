// SPDX-License-Identifier: MIT

import BluetoothLE

/// Gives each value to every stream that was asked for, each with a buffer that keeps the newest.
final class Broadcast<Value: Sendable>: Sendable {
    private struct State {
        var lastID = 0
        var readers: [Int: AsyncStream<Value>.Continuation] = [:]
        var isFinished = false
    }

    private let state = Locked(State())
    private let limit: Int

    init(keeping limit: Int) { self.limit = limit }

    /// - Parameter first: What the stream begins with.
    func stream(startingWith first: Value? = nil) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(limit))
        let id: Int? = state.withLock { state in
            guard !state.isFinished, state.readers.count < Limits.streams else { return nil }
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

    func send(_ value: Value) {
        for reader in state.withLock({ Array($0.readers.values) }) { reader.yield(value) }
    }

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

/// A session's events, in the three ways in which they can be taken.
final class EventHub: Sendable {
    typealias Handler = @Sendable (DeviceEvent) -> Void

    private struct State {
        var onEvent: Handler?
        var lastID: UInt64 = 0
        /// In the order in which they were added.
        var observers: [(id: UInt64, kinds: DeviceEvent.Kinds, handler: Handler)] = []
        var isFinished = false
    }

    let streams = Broadcast<DeviceEvent>(keeping: Limits.events)
    private let state = Locked(State())

    var onEvent: Handler? {
        get { state.withLock { $0.onEvent } }
        set { state.withLock { if !$0.isFinished { $0.onEvent = newValue } } }
    }

    func add(_ kinds: DeviceEvent.Kinds, _ handler: @escaping Handler) throws(DeviceSessionError) -> ObserverToken {
        try state.withLock { (state) throws(DeviceSessionError) in
            if state.isFinished { throw .tornDown }
            guard state.observers.count < Limits.observers else {
                throw DeviceSessionError(.limitExceeded, "a session has at most \(Limits.observers) observers")
            }
            state.lastID += 1
            state.observers.append((state.lastID, kinds, handler))
            return ObserverToken(id: state.lastID)
        }
    }

    func remove(_ token: ObserverToken) {
        state.withLock { state in state.observers.removeAll { $0.id == token.id } }
    }

    /// Outside of the lock: a handler may add and remove observers.
    func send(_ event: DeviceEvent) {
        let (onEvent, observers) = state.withLock { ($0.onEvent, $0.observers) }
        onEvent?(event)
        for observer in observers where observer.kinds.contains(event.kind) { observer.handler(event) }
        streams.send(event)
    }

    /// Ends the streams, and forgets the handlers: what they hold is released.
    func finish() {
        streams.finish()
        let released = state.withLock { state in
            defer { state = State(lastID: state.lastID, isFinished: true) }
            return state
        }
        withExtendedLifetime(released) {}
    }
}

/// What `addObserver` gives, for `remove`.
public struct ObserverToken: Sendable, Hashable {
    let id: UInt64
}
