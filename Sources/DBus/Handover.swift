// SPDX-License-Identifier: MIT

/// A result that meets whoever waits for it, in either order, once.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class Handover<Success: Sendable>: @unchecked Sendable {
    typealias Outcome = Result<Success, DBusError>

    private let lock = Lock()
    private var outcome: Outcome?
    private var waiter: (@Sendable (Outcome) -> Void)?

    /// A second result is ignored.
    ///
    /// - Returns: Whether it was the first.
    @discardableResult
    func fulfil(_ result: Outcome) -> Bool {
        let (isFirst, waiter) = lock.withLock { () -> (Bool, (@Sendable (Outcome) -> Void)?) in
            guard outcome == nil else { return (false, nil) }
            outcome = result
            return (true, self.waiter)
        }
        waiter?(result)
        return isFirst
    }

    /// Only one may wait.
    func wait(_ waiter: @escaping @Sendable (Outcome) -> Void) {
        let outcome = lock.withLock { () -> Outcome? in
            if self.outcome == nil { self.waiter = waiter }
            return self.outcome
        }
        if let outcome { waiter(outcome) }
    }

    func wait(_ continuation: CheckedContinuation<Outcome, Never>) {
        wait { continuation.resume(returning: $0) }
    }
}

/// The id of a wait for the end of a connection.
///
/// `@unchecked Sendable`: touched on the loop only.
final class EndWaiter: @unchecked Sendable {
    var id: UInt64?
}
