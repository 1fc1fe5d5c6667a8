// SPDX-License-Identifier: MIT

import BlueZSimulator
import ContractSuite
import HandoffSuite
import Testing

/// The same cases as on the simulated radio, now across a real bus: BlueZ's room, D-Bus and a simulated bluetoothd.
@Suite(.timeLimit(.minutes(14))) struct StackTests {
    @Test(arguments: ContractCase.all)
    func contractHolds(_ contractCase: ContractCase) async throws {
        // Before 5.69 bluetoothd refuses 511 and 512 bytes (bluez/bluez#570).
        let (outcome, links) = try await BlueZBench.check(contractCase, on: .bluez582)
        #expect(outcome.isExpected)
        #expect(links.isEmpty)
    }

    @Test(arguments: ContractCase.handoff)
    func handoffHolds(_ handoffCase: ContractCase) async throws {
        let (outcome, links) = try await BlueZBench.check(handoffCase)
        #expect(outcome.isExpected)
        #expect(links.isEmpty)
    }

    /// What differs between BlueZ's versions must not show above its room.
    @Test(arguments: BehaviourProfile.all, ContractCase.handoff.filter { $0.needs.isEmpty })
    func handoffHoldsOnEveryVersion(_ profile: BehaviourProfile, _ handoffCase: ContractCase) async throws {
        let (outcome, _) = try await BlueZBench.check(handoffCase, on: profile)
        #expect(outcome.isExpected)
    }

    /// Where bluetoothd never signals that a link is up.
    @Test(arguments: ContractCase.handoff.filter { $0.needs.isEmpty })
    func handoffHoldsWithSilentLinks(_ handoffCase: ContractCase) async throws {
        var profile = BehaviourProfile.bluez582
        profile.connectsSilently = true
        let (outcome, _) = try await BlueZBench.check(handoffCase, on: profile)
        #expect(outcome.isExpected)
    }

    /// And across a bridge on top of that: TCP, its server, BlueZ's room, D-Bus and a simulated bluetoothd.
    @Test(arguments: ContractCase.all)
    func contractHoldsThroughBridges(_ contractCase: ContractCase) async throws {
        let (outcome, links) = try await BlueZBench.check(contractCase, on: .bluez582, isBridged: true)
        #expect(outcome.isExpected)
        #expect(links.isEmpty)
    }

    @Test(arguments: ContractCase.handoff)
    func handoffHoldsThroughBridges(_ handoffCase: ContractCase) async throws {
        let (outcome, links) = try await BlueZBench.check(handoffCase, isBridged: true)
        #expect(outcome.isExpected)
        #expect(links.isEmpty)
    }
}

extension ContractCase.Outcome {
    /// Held, or differed as the table of differences says with its reason.
    var isExpected: Bool {
        switch self {
        case .held, .differed: true
        case .leftOut: false
        }
    }
}
