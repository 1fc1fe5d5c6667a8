// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import SimulatedRadio
import Testing

/// The contract's cases over the simulated radio, on the manual clock.
@Suite struct ContractTests {
    @Test(arguments: ContractCase.all)
    func holds(_ contractCase: ContractCase) async throws {
        let bench = SimulatedBench.make()
        #expect(try await contractCase.run(on: bench.bench) == .held)
        #expect(bench.medium.links.isEmpty)
    }

    /// Latency, a slow connection and lost advertisements change when things happen, not what happens.
    @Test(arguments: ContractCase.all)
    func holdsInBadAir(_ contractCase: ContractCase) async throws {
        let bench = SimulatedBench.make(
            conditions: Conditions(
                latency: .milliseconds(8),
                connectionTime: .milliseconds(120),
                discoveryTime: .milliseconds(300),
                advertisementLoss: 0.3,
                advertisingJitter: .milliseconds(10)
            )
        )
        #expect(try await contractCase.run(on: bench.bench) == .held)
        #expect(bench.medium.links.isEmpty)
    }

    /// Another kind of stack behind the same contract: private notifications, an unknown MTU, split long writes.
    @Test(arguments: ContractCase.all)
    func holdsOnAnotherStack(_ contractCase: ContractCase) async throws {
        let bench = SimulatedBench.make(
            configuration: AdapterConfiguration(
                tellsMTU: false,
                notificationScope: .central,
                longWrites: .split(at: 504)
            )
        )
        #expect(try await contractCase.run(on: bench.bench) == .held)
        #expect(bench.medium.links.isEmpty)
    }

    /// The suite has to be able to fail.
    @Test func aBenchWithoutAnybodyToFindIsAViolation() async throws {
        let bench = SimulatedBench.make()
        bench.medium.setInRange(false, between: bench.host, and: bench.phone)
        let discovery = try #require(ContractCase.all.first { $0.needs.isEmpty })
        await #expect(throws: ContractViolation.self) { try await discovery.run(on: bench.bench) }
    }
}
