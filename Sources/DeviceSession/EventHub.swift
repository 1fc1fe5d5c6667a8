// SPDX-License-Identifier: MIT

import BluetoothLE

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

    let streams = Broadcast<DeviceEvent>(keeping: Limits.events, readers: Limits.streams)
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
