// SPDX-License-Identifier: MIT

import BluetoothLE

/// The events of one session for its reader: bounded, and no event is ever dropped before a request is (contract).
///
/// `AsyncStream`'s own policies drop whatever is oldest or newest.
final class EventBox: Sendable {
    private struct State {
        var events: [PeripheralEvent] = []
        var isFinished = false
        var reader: CheckedContinuation<PeripheralEvent?, Never>?
    }

    private let state = Locked(State())

    /// - Returns: a request that there is no room for.
    func post(_ event: PeripheralEvent) -> RequestID? {
        let (reader, refused) = state.withLock {
            state -> (CheckedContinuation<PeripheralEvent?, Never>?, RequestID?) in
            if state.isFinished { return (nil, event.request) }
            if let reader = state.reader {
                state.reader = nil
                return (reader, nil)
            }
            var refused: RequestID?
            if state.events.count >= BridgeLimits.peripheralEvents {
                if let request = event.request { return (nil, request) }
                if let index = state.events.lastIndex(where: { $0.request != nil }) {
                    refused = state.events.remove(at: index).request
                } else {
                    state.events.removeFirst()
                }
            }
            state.events.append(event)
            return (nil, refused)
        }
        reader?.resume(returning: event)
        return refused
    }

    /// The reader gets what is left, then the end.
    func finish() {
        state.withLock { state in
            state.isFinished = true
            defer { state.reader = nil }
            return state.reader
        }?.resume(returning: nil)
    }

    func stream() -> AsyncStream<PeripheralEvent> {
        // A reader that gives up is no reason to stop serving: requests beyond the buffer are refused.
        AsyncStream {
            await self.next()
        } onCancel: {
            self.finish()
        }
    }

    private func next() async -> PeripheralEvent? {
        await withCheckedContinuation { continuation in
            let result = state.withLock { state -> PeripheralEvent?? in
                if !state.events.isEmpty { return .some(state.events.removeFirst()) }
                if state.isFinished || state.reader != nil { return .some(nil) }
                state.reader = continuation
                return nil
            }
            if let result { continuation.resume(returning: result) }
        }
    }
}

extension PeripheralEvent {
    fileprivate var request: RequestID? {
        switch self {
        case .read(let request): request.id
        case .write(let request): request.id
        default: nil
        }
    }
}
