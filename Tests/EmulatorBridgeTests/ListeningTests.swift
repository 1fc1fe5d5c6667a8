// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import SimulatedRadio
import Testing

@testable import BridgeRadio
@testable import EmulatorBridge

/// When a bridge listens, and when no longer.
@Suite(.timeLimit(.minutes(1))) struct ListeningTests {
    private let radio = SimulatedMedium(clock: ContinuousClock()).addAdapter()

    private func bridge(port: Int = 0) throws -> EmulatorBridge {
        try EmulatorBridge(
            radios: .shared(radio),
            configuration: BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: port)))
    }

    /// Whether nothing listens there any more. The loop closes in its own time.
    private func expectFree(_ port: Int) async throws {
        try await within(.seconds(10), ContinuousClock(), "port \(port) is free") {
            while true {
                let next = try bridge(port: port)
                if await (try? next.start()) != nil { return await next.stop() }
                try await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    @Test func aBridgeThatNobodyHoldsAnyMoreListensNoMore() async throws {
        var forgotten: EmulatorBridge? = try bridge()
        let events = Recorder(try #require(forgotten?.events), clock: ContinuousClock())
        let endpoint = try #require(try await forgotten?.start())
        forgotten = nil
        try await events.waitForEnd(within: .seconds(10), "the end of its events")
        try await expectFree(endpoint.port)
    }

    /// More at once than the machine has cores, a few times over.
    @Test func ofSeveralStartsAtOnceOneIsTheFirst() async throws {
        for _ in 1...30 {
            let bridge = try bridge()
            let started = await withTaskGroup(of: Bool.self) { group in
                for _ in 1...4 { group.addTask { await (try? bridge.start()) != nil } }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(started == 1)
            await bridge.stop()
        }
    }

    @Test func aStopInTheMiddleOfTheStartLeavesNothingThatListens() async throws {
        let first = try bridge()
        let port = try await first.start().port
        await first.stop()
        // At each point of the start, sooner or later.
        for round in 0..<100 {
            let bridge = try bridge(port: port)
            async let started = try? bridge.start()
            for _ in 0..<round % 20 { await Task.yield() }
            await bridge.stop()
            _ = await started
        }
        try await expectFree(port)
    }

    @Test func aStartThatFailedCanBeTriedAgain() async throws {
        let first = try bridge()
        let second = try bridge(port: try await first.start().port)
        await #expect(throws: BluetoothError.self) { try await second.start() }
        await first.stop()
        try await within(.seconds(10), ContinuousClock(), "it starts") {
            while await (try? second.start()) == nil { try await Task.sleep(for: .milliseconds(5)) }
        }
        await second.stop()
    }
}
