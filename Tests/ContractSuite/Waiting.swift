// SPDX-License-Identifier: MIT

package import BluetoothLE

/// Runs an operation, and cancels it if it takes longer than `limit` on the clock.
package func within<Value: Sendable>(
    _ limit: Duration,
    _ clock: any MonotonicClock,
    _ what: String,
    _ operation: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await operation() }
        group.addTask {
            try await sleep(limit, clock)
            return nil
        }
        defer { group.cancelAll() }
        guard let first = try await group.next(), let value = first else {
            throw ContractViolation(description: "\(what): not within \(limit)")
        }
        return value
    }
}

/// Lets time pass on a radio's clock.
package func sleep(_ duration: Duration, _ clock: some MonotonicClock) async throws {
    try await clock.sleep(until: clock.now.advanced(by: duration), tolerance: nil)
}

package func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
    if !condition { throw ContractViolation(description: what()) }
}

package func require<Value>(_ value: Value?, _ what: @autoclosure () -> String) throws -> Value {
    guard let value else { throw ContractViolation(description: what()) }
    return value
}

/// Checks that an operation fails with one of these codes, and gives the error.
@discardableResult
package func requireError<Value>(
    _ codes: BluetoothError.Code...,
    from what: String,
    _ operation: () async throws -> Value
) async throws -> BluetoothError {
    do {
        _ = try await operation()
    } catch let error as BluetoothError {
        try require(codes.contains(error.code), "\(what): \(error.code) (\(error)) in place of \(codes)")
        return error
    }
    throw ContractViolation(description: "\(what): succeeded in place of \(codes)")
}

/// A stream's elements as they come, to be looked for in any order.
package actor Recorder<Element: Sendable> {
    private var elements: [Element] = []
    private var hasEnded = false
    /// Counts what has been recorded.
    private var version = 0
    private var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    private var nextWaiter = 0
    private let clock: any MonotonicClock
    private var reader: Task<Void, Never>?

    /// - Parameter handle: Called with each element before it is recorded.
    package init(
        _ stream: AsyncStream<Element>,
        clock: any MonotonicClock,
        handle: @escaping @Sendable (Element) async -> Void = { _ in }
    ) {
        self.clock = clock
        Task { await self.read(stream, handle) }
    }

    private func read(_ stream: AsyncStream<Element>, _ handle: @escaping @Sendable (Element) async -> Void) {
        reader = Task { [weak self] in
            for await element in stream {
                await handle(element)
                await self?.record(element)
            }
            await self?.end()
        }
    }

    private func record(_ element: Element) {
        elements.append(element)
        version += 1
        wakeAll()
    }

    private func end() {
        hasEnded = true
        wakeAll()
    }

    private func wakeAll() {
        for waiter in waiters.values { waiter.resume() }
        waiters = [:]
    }

    /// Cancels the reader.
    package func cancel() { reader?.cancel() }

    /// Takes the first element that matches, and waits for one.
    package func next<Value: Sendable>(
        within limit: Duration,
        _ what: String,
        _ match: @escaping @Sendable (Element) -> Value?
    ) async throws -> Value {
        try await ContractSuite.within(limit, clock, what) {
            while true {
                let version = await self.version
                if let value = await self.take(match) { return value }
                if await self.hasEnded { throw ContractViolation(description: "\(what): the stream has ended") }
                try Task.checkCancellation()
                await self.change(since: version)
            }
        }
    }

    /// Takes the first element that matches and is there.
    package func take<Value: Sendable>(_ match: @Sendable (Element) -> Value?) -> Value? {
        for (index, element) in elements.enumerated() {
            if let value = match(element) {
                elements.remove(at: index)
                return value
            }
        }
        return nil
    }

    /// Checks that nothing that matches has come, or comes for a while.
    package func expectNone(for silence: Duration, _ what: String, _ match: @Sendable (Element) -> Bool) async throws {
        try await sleep(silence, clock)
        if let element = elements.first(where: match) {
            throw ContractViolation(description: "\(what): \(element)")
        }
    }

    /// Waits for the stream's end.
    package func waitForEnd(within limit: Duration, _ what: String) async throws {
        try await ContractSuite.within(limit, clock, what) {
            while await !self.hasEnded {
                try Task.checkCancellation()
                await self.change(since: self.version)
            }
        }
    }

    /// Returns once there is another element than at `version`, at the end, and when the task is cancelled.
    private func change(since version: Int) async {
        nextWaiter += 1
        let id = nextWaiter
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled || hasEnded || version != self.version {
                    continuation.resume()
                } else {
                    waiters[id] = continuation
                }
            }
        } onCancel: {
            Task { await self.wake(id) }
        }
    }

    private func wake(_ id: Int) {
        waiters.removeValue(forKey: id)?.resume()
    }
}
