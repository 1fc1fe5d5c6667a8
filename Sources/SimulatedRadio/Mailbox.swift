// SPDX-License-Identifier: MIT

import BluetoothLE

/// The bounded buffer behind a stream, with one reader.
///
/// `post` may be called under the medium's lock: it never waits and resumes nobody. It hands back what has to be done
/// once that lock is released. An `AsyncStream` with its own buffer would not do: none of its policies drops a request
/// rather than an event, or says that it dropped something.
final class Mailbox<Element: Sendable>: Sendable {
    enum Policy: Sendable {
        /// Keeps the newest.
        case newest(Int)
        /// Keeps what was posted as an event, and refuses what was posted as a request while full.
        case eventsBeforeRequests
    }

    /// What became of a posted element.
    struct Outcome {
        /// Wakes the reader.
        var wake: (@Sendable () -> Void)?
        var isRefused = false
        /// A request that had to make room.
        var evicted: Element?
    }

    private struct Item {
        let element: Element
        let isRequest: Bool
    }

    private struct State {
        var items: [Item] = []
        /// Items before it have been read.
        var head = 0
        var isFinished = false
        var reader: CheckedContinuation<Element?, Never>?

        var count: Int { items.count - head }

        mutating func popFirst() -> Element? {
            guard head < items.count else { return nil }
            let element = items[head].element
            head += 1
            if head == items.count {
                items.removeAll(keepingCapacity: head <= 64)
                head = 0
            } else if head > 256 {
                items.removeFirst(head)
                head = 0
            }
            return element
        }
    }

    private let state = Locked(State())
    private let policy: Policy
    private let activity: Activity

    init(_ policy: Policy, activity: Activity) {
        self.policy = policy
        self.activity = activity
    }

    func post(_ element: Element, isRequest: Bool = false) -> Outcome {
        state.withLock { state in
            var outcome = Outcome()
            if state.isFinished {
                outcome.isRefused = true
                return outcome
            }
            if let reader = state.reader {
                state.reader = nil
                outcome.wake = { reader.resume(returning: element) }
                return outcome
            }
            switch policy {
            case .newest(let limit):
                if state.count >= limit { _ = state.popFirst() }
            case .eventsBeforeRequests where state.count >= Limits.peripheralEvents:
                if isRequest {
                    outcome.isRefused = true
                    return outcome
                }
                if let index = state.items[state.head...].lastIndex(where: \.isRequest) {
                    outcome.evicted = state.items.remove(at: index).element
                } else {
                    _ = state.popFirst()
                }
            case .eventsBeforeRequests:
                break
            }
            state.items.append(Item(element: element, isRequest: isRequest))
            return outcome
        }
    }

    /// The reader gets what is left, then the end.
    func finish() -> (@Sendable () -> Void)? {
        state.withLock { state in
            state.isFinished = true
            guard let reader = state.reader else { return nil }
            state.reader = nil
            return { reader.resume(returning: nil) }
        }
    }

    /// - Parameter token: Released with the stream, or when its reader is cancelled.
    func stream(keeping token: ReleaseToken?) -> AsyncStream<Element> {
        AsyncStream {
            defer { withExtendedLifetime(token) {} }
            return await self.next()
        } onCancel: {
            self.finish()?()
            token?.release()
        }
    }

    private func next() async -> Element? {
        activity.note()
        return await withCheckedContinuation { continuation in
            let result = state.withLock { state -> Element?? in
                if let element = state.popFirst() { return .some(element) }
                // A second reader is a mistake of the caller; it must not hang.
                if state.isFinished || state.reader != nil { return .some(nil) }
                state.reader = continuation
                return nil
            }
            if let result { continuation.resume(returning: result) }
        }
    }
}
