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

/// A bench of simulated radios.
struct SimulatedBench: ContractControls {
    let clock: ManualClock
    let medium: SimulatedMedium
    let host: SimulatedRadio
    let phone: SimulatedRadio
    let secondPhone: SimulatedRadio

    static func make(
        conditions: Conditions = Conditions(),
        configuration: AdapterConfiguration = AdapterConfiguration()
    ) -> SimulatedBench {
        let clock = ManualClock()
        let medium = SimulatedMedium(clock: clock, seed: 7, conditions: conditions)
        return SimulatedBench(
            clock: clock,
            medium: medium,
            host: medium.addAdapter(name: "host", configuration: configuration),
            phone: medium.addAdapter(name: "phone", configuration: configuration),
            secondPhone: medium.addAdapter(name: "second phone", configuration: configuration)
        )
    }

    var bench: ContractBench {
        ContractBench(
            name: "SimulatedRadio",
            peripheral: host,
            central: phone,
            secondCentral: secondPhone,
            controls: self
        )
    }

    var abilities: Set<ContractAbility> { Set(ContractAbility.allCases) }

    func perform(_ intervention: ContractIntervention) async throws {
        switch intervention {
        case .setPower(let isOn, let role): radio(role).setPowered(isOn)
        case .restartService(let role): radio(role).restartService(downFor: .milliseconds(500))
        case .dropLink: medium.drop(between: phone, and: host)
        case .setRSSI(let rssi): medium.setRSSI(rssi, between: host, and: phone)
        case .setInRange(let inRange): medium.setInRange(inRange, between: host, and: phone)
        case .setMTU(let mtu): medium.setMTU(mtu, between: host, and: phone)
        }
    }

    func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        try await clock.run(body)
    }

    private func radio(_ role: ContractRole) -> SimulatedRadio {
        switch role {
        case .peripheral: host
        case .central: phone
        }
    }
}
