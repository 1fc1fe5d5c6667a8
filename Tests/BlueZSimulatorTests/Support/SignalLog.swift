// SPDX-License-Identifier: MIT

import DBus
import Testing

/// Things in the order in which they came, and a wait for one that is still to come.
///
/// `@unchecked Sendable`: everything mutable is guarded by `lock`.
final class Log<Element: Sendable>: @unchecked Sendable {
    private struct Waiter {
        let id: Int
        let start: Int
        let satisfies: @Sendable (Element) -> Bool
        let continuation: CheckedContinuation<Element?, Never>
    }

    private let lock = Lock()
    private var elements: [Element] = []
    private var waiters: [Waiter] = []
    private var nextID = 0

    var all: [Element] { lock.withLock { elements } }
    var count: Int { lock.withLock { elements.count } }

    func add(_ element: Element) {
        let done = lock.withLock {
            elements.append(element)
            let done = waiters.filter { $0.start < elements.count && $0.satisfies(element) }
            waiters.removeAll { waiter in done.contains { $0.id == waiter.id } }
            return done
        }
        for waiter in done { waiter.continuation.resume(returning: element) }
    }

    /// The first element at `start` or later that satisfies, now or when it comes; fails after 10 s of real time.
    func wait(
        from start: Int = 0, sourceLocation: SourceLocation = #_sourceLocation,
        _ satisfies: @escaping @Sendable (Element) -> Bool
    ) async throws -> Element {
        let id = lock.withLock {
            nextID += 1
            return nextID
        }
        let deadline = Task {
            try await Task.sleep(for: .seconds(10))
            let waiter = lock.withLock { () -> Waiter? in
                guard let index = waiters.firstIndex(where: { $0.id == id }) else { return nil }
                return waiters.remove(at: index)
            }
            waiter?.continuation.resume(returning: nil)
        }
        defer { deadline.cancel() }
        let found = await withCheckedContinuation { (continuation: CheckedContinuation<Element?, Never>) in
            let found = lock.withLock { () -> Element? in
                if let found = elements.dropFirst(start).first(where: satisfies) { return found }
                waiters.append(Waiter(id: id, start: start, satisfies: satisfies, continuation: continuation))
                return nil
            }
            if let found { continuation.resume(returning: found) }
        }
        return try #require(found, "nothing of the kind within 10 s", sourceLocation: sourceLocation)
    }
}

typealias SignalLog = Log<DBusMessage>
