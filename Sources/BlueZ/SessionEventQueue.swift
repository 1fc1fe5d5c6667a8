// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// The events of one session on their way to their reader.
///
/// `AsyncStream`'s own buffer drops whatever comes when it is full; here a request is refused, which its central is
/// told, long before any other event is lost.
///
/// `@unchecked Sendable`: everything that varies is guarded by `lock`.
final class SessionEventQueue: @unchecked Sendable {
    private let lock = Lock()
    private var events: [PeripheralEvent] = []
    private var head = 0
    private var reader: CheckedContinuation<PeripheralEvent?, Never>?
    private var isFinished = false

    /// - Returns: Whether the event will reach the reader.
    func offer(_ event: PeripheralEvent, isRequest: Bool = false) -> Bool {
        lock.lock()
        guard !isFinished else {
            lock.unlock()
            return false
        }
        if let reader {
            self.reader = nil
            lock.unlock()
            reader.resume(returning: event)
            return true
        }
        defer { lock.unlock() }
        guard events.count - head < (isRequest ? Limits.sessionRequests : Limits.sessionEvents) else { return false }
        events.append(event)
        return true
    }

    func finish() {
        lock.lock()
        isFinished = true
        let reader = self.reader
        self.reader = nil
        lock.unlock()
        reader?.resume(returning: nil)
    }

    /// The next event; `nil` when there will be none. For one reader.
    private func next() async -> PeripheralEvent? {
        await withCheckedContinuation { continuation in
            lock.lock()
            if head < events.count {
                let event = events[head]
                head += 1
                if head == events.count || head >= Limits.sessionEvents {
                    events.removeFirst(head)
                    head = 0
                }
                lock.unlock()
                continuation.resume(returning: event)
                return
            }
            // A second reader would wait for ever: it is told that there is nothing.
            let isOver = isFinished || reader != nil
            if !isOver { reader = continuation }
            lock.unlock()
            if isOver { continuation.resume(returning: nil) }
        }
    }

    func stream() -> AsyncStream<PeripheralEvent> {
        AsyncStream {
            await self.next()
        } onCancel: {
            self.finish()
        }
    }
}
