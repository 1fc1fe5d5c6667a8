// SPDX-License-Identifier: MIT

import BluetoothLE

/// Many senders, one reader, in order: how events, results and timers reach a state machine one at a time.
///
/// `send` suspends while `Limits.inbox` elements wait, so that a fast radio cannot grow the process; `post` never
/// waits and is for results of which the machine has asked for a bounded number.
final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var head = 0
        var reader: CheckedContinuation<Void, Never>?
        var senders: [CheckedContinuation<Void, Never>] = []
        var isClosed = false

        var count: Int { elements.count - head }

        mutating func popFirst() -> Element? {
            guard head < elements.count else { return nil }
            let element = elements[head]
            head += 1
            if head == elements.count {
                elements.removeAll(keepingCapacity: true)
                head = 0
            } else if head >= 64 {
                elements.removeFirst(head)
                head = 0
            }
            return element
        }
    }

    private let state = Locked(State())

    /// Hands an element over without waiting. Dropped once the inbox is closed.
    func post(_ element: Element) {
        let reader: CheckedContinuation<Void, Never>? = state.withLock { state in
            guard !state.isClosed else { return nil }
            // Through the lock also to a reader that waits: a value that goes through a continuation is a race to
            // ThreadSanitizer (seen once, with Swift 6.3.1).
            state.elements.append(element)
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    /// Hands an element over, after the reader has caught up.
    func send(_ element: Element) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let waits = state.withLock { state in
                guard !state.isClosed, state.count >= Limits.inbox else { return false }
                state.senders.append(continuation)
                return true
            }
            if !waits { continuation.resume() }
        }
        post(element)
    }

    /// The next element; `nil` once the inbox is closed and empty. One reader at a time.
    func next() async -> Element? {
        while true {
            var sender: CheckedContinuation<Void, Never>?
            let (element, isClosed) = state.withLock { state in
                let element = state.popFirst()
                if element != nil, state.count < Limits.inbox, !state.senders.isEmpty {
                    sender = state.senders.removeFirst()
                }
                return (element, state.isClosed)
            }
            sender?.resume()
            if let element { return element }
            if isClosed { return nil }
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    guard state.count == 0, !state.isClosed else { return false }
                    state.reader = continuation
                    return true
                }
                if !waits { continuation.resume() }
            }
        }
    }

    /// Lets the reader run dry and drops what comes later. May be called more than once.
    func close() {
        let (reader, senders) = state.withLock { state in
            state.isClosed = true
            defer {
                state.reader = nil
                state.senders = []
            }
            return (state.reader, state.senders)
        }
        reader?.resume()
        for sender in senders { sender.resume() }
    }
}
