// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import HandoffSuite
import SimulatedRadio
import Testing

/// The same cases as on the simulated radio, now through the bridge's client, TCP, and the bridge's server.
@Suite(.timeLimit(.minutes(14))) struct StackTests {
    @Test(arguments: ContractCase.all)
    func contractHolds(_ contractCase: ContractCase) async throws {
        let (outcome, links) = try await BridgeBench.check(contractCase)
        #expect(outcome == .held)
        #expect(links.isEmpty)
    }

    @Test(arguments: ContractCase.handoff)
    func handoffHolds(_ handoffCase: ContractCase) async throws {
        let (outcome, links) = try await BridgeBench.check(handoffCase)
        #expect(outcome == .held)
        #expect(links.isEmpty)
    }

    /// Another kind of stack behind the bridge: private notifications, an unknown MTU, split long writes.
    @Test(arguments: ContractCase.all)
    func contractHoldsOnAnotherStack(_ contractCase: ContractCase) async throws {
        let configuration = AdapterConfiguration(
            tellsMTU: false, notificationScope: .central, longWrites: .split(at: 504))
        let (outcome, links) = try await BridgeBench.check(contractCase, configuration)
        #expect(outcome == .held)
        #expect(links.isEmpty)
    }
}
