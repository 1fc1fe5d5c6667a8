// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import HandoffSuite
import SimulatedRadio
import Testing

/// The two roles over the simulated radio, on the manual clock.
@Suite struct HandoffTests {
    @Test(arguments: ContractCase.handoff)
    func holds(_ handoffCase: ContractCase) async throws {
        let bench = SimulatedBench.make()
        #expect(try await handoffCase.run(on: bench.bench) == .held)
        #expect(bench.medium.links.isEmpty)
    }

    /// Latency, a slow connection and lost advertisements change when things happen, not what happens.
    @Test(arguments: ContractCase.handoff)
    func holdsInBadAir(_ handoffCase: ContractCase) async throws {
        let bench = SimulatedBench.make(
            conditions: Conditions(
                latency: .milliseconds(8),
                connectionTime: .milliseconds(120),
                discoveryTime: .milliseconds(300),
                advertisementLoss: 0.3,
                advertisingJitter: .milliseconds(10)
            )
        )
        #expect(try await handoffCase.run(on: bench.bench) == .held)
        #expect(bench.medium.links.isEmpty)
    }

    /// Another kind of stack behind the same contract: private notifications, split long writes.
    @Test(arguments: ContractCase.handoff)
    func holdsOnAnotherStack(_ handoffCase: ContractCase) async throws {
        let bench = SimulatedBench.make(
            configuration: AdapterConfiguration(notificationScope: .central, longWrites: .split(at: 504))
        )
        #expect(try await handoffCase.run(on: bench.bench) == .held)
        #expect(bench.medium.links.isEmpty)
    }
}
