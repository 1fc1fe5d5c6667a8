// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio
import ContractSuite
import EmulatorBridge
import SimulatedRadio

/// `BridgeRadio`s over bridges of their own, with simulated radios behind them, in one air and in real time.
///
/// One bridge for each radio, so that a blow to one side leaves the other alone, as two machines would.
struct BridgeBench: OwnBench, ContractControls {
    private struct Machine {
        let simulated: SimulatedRadio
        let bridge: EmulatorBridge
        let radio: BridgeRadio
    }

    let medium: SimulatedMedium
    private let host: Machine
    private let phone: Machine
    private let secondPhone: Machine

    static func make(
        _ configuration: AdapterConfiguration = AdapterConfiguration()
    ) async throws -> BridgeBench {
        let medium = SimulatedMedium(
            clock: ContinuousClock(),
            seed: 11,
            conditions: Conditions(connectionTime: .milliseconds(30), discoveryTime: .milliseconds(30))
        )
        return BridgeBench(
            medium: medium,
            host: try await machine(medium, configuration),
            phone: try await machine(medium, configuration),
            secondPhone: try await machine(medium, configuration)
        )
    }

    private static func machine(
        _ medium: SimulatedMedium,
        _ configuration: AdapterConfiguration
    ) async throws -> Machine {
        let simulated = medium.addAdapter(configuration: configuration)
        let bridge = try EmulatorBridge(
            radios: .shared(simulated),
            configuration: BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: 0))
        )
        let endpoint = try await bridge.start()
        return Machine(simulated: simulated, bridge: bridge, radio: BridgeRadio(endpoint))
    }

    var bench: ContractBench {
        ContractBench(
            name: "Bridge",
            peripheral: host.radio,
            central: phone.radio,
            secondCentral: secondPhone.radio,
            controls: self,
            patience: .seconds(20),
            silence: .seconds(2)
        )
    }

    /// Ends the radios and the bridges.
    func close() async {
        for machine in [host, phone, secondPhone] {
            await machine.radio.shutdown()
            await machine.bridge.stop()
        }
    }

    var abilities: Set<ContractAbility> { Set(ContractAbility.allCases) }

    func perform(_ intervention: ContractIntervention) async throws {
        switch intervention {
        case .setPower(let isOn, let role): machine(role).simulated.setPowered(isOn)
        case .setPlugged(true, let role): machine(role).simulated.plug()
        case .setPlugged(false, let role): machine(role).simulated.unplug()
        case .restartService(let role): machine(role).simulated.restartService(downFor: .milliseconds(300))
        case .dropLink: try medium.dropLink(between: phone.simulated, and: host.simulated)
        case .setRSSI(let rssi): medium.setRSSI(rssi, between: host.simulated, and: phone.simulated)
        case .setInRange(let inRange): medium.setInRange(inRange, between: host.simulated, and: phone.simulated)
        case .setMTU(let mtu): medium.setMTU(mtu, between: host.simulated, and: phone.simulated)
        }
    }

    private func machine(_ role: ContractRole) -> Machine {
        switch role {
        case .peripheral: host
        case .central: phone
        }
    }

    /// A case has so much real time and no more: so many at once as leave each its share of two cores.
    private static let turns = Turns(48)

    /// Runs one case on a bench of its own.
    static func check(
        _ contractCase: ContractCase,
        _ configuration: AdapterConfiguration = AdapterConfiguration()
    ) async throws -> (ContractCase.Outcome, linksLeft: [SimulatedLink]) {
        try await contractCase.check(within: turns) { try await make(configuration) }
    }
}
