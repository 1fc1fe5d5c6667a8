// SPDX-License-Identifier: MIT

package import SimulatedRadio

/// A bench that one case has for itself, in real time.
package protocol OwnBench: Sendable {
    var bench: ContractBench { get }
    /// The air beneath it.
    var medium: SimulatedMedium { get }

    /// Ends all that it has begun.
    func close() async
}

extension ContractCase {
    /// Runs on a bench of its own, when it is its turn, and closes it whatever comes of it.
    package func check(
        within turns: Turns,
        on make: @Sendable () async throws -> some OwnBench
    ) async throws -> (Outcome, linksLeft: [SimulatedLink]) {
        try await turns.run {
            let own = try await make()
            let result: Result<Outcome, any Error>
            do { result = .success(try await run(on: own.bench)) } catch { result = .failure(error) }
            await own.close()
            return (try result.get(), own.medium.links)
        }
    }
}

/// Lets so many through at a time, in order.
package actor Turns {
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    package init(_ count: Int) { free = count }

    package func run<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
        if free > 0 { free -= 1 } else { await withCheckedContinuation { waiting.append($0) } }
        defer { if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() } }
        return try await body()
    }
}
