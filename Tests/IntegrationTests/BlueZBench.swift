// SPDX-License-Identifier: MIT

import BlueZ
import BlueZSimulator
import BluetoothLE
import BridgeRadio
import ContractSuite
import DBus
import EmulatorBridge
import SimulatedRadio

/// `BlueZRadio`s over simulated daemons, each on a private bus of its own, in one air and in real time.
///
/// One daemon for each radio, so that a blow to one side leaves the other alone, as two machines would.
struct BlueZBench: OwnBench, ContractControls {
    private struct Machine {
        let bus: PrivateBus
        let simulator: BlueZSimulator
        let bluez: BlueZRadio
        /// In front of BlueZ, if there is one.
        var bridge: (server: EmulatorBridge, client: BridgeRadio)?

        var radio: any Radio { bridge?.client ?? bluez }

        var simulated: SimulatedRadio { get throws { try require(simulator.radios["hci0"], "the machine's adapter") } }
    }

    let medium: SimulatedMedium
    private let name: String
    private let host: Machine
    private let phone: Machine
    private let secondPhone: Machine

    /// - Parameter isBridged: Whether each radio is used through a bridge of its own.
    static func make(
        _ profile: BehaviourProfile = .bluez566, isBridged: Bool = false
    ) async throws -> BlueZBench {
        let medium = SimulatedMedium(
            clock: ContinuousClock(),
            seed: 11,
            conditions: Conditions(connectionTime: .milliseconds(30), discoveryTime: .milliseconds(30))
        )
        return BlueZBench(
            medium: medium,
            name: "BlueZSimulator \(profile.version)" + (isBridged ? " through bridges" : ""),
            host: try await machine(medium, profile, isBridged),
            phone: try await machine(medium, profile, isBridged),
            secondPhone: try await machine(medium, profile, isBridged)
        )
    }

    private static func machine(
        _ medium: SimulatedMedium, _ profile: BehaviourProfile, _ isBridged: Bool
    ) async throws -> Machine {
        let bus = try await PrivateBus()
        let simulator = try await BlueZSimulator.start(on: bus.busAddress, medium: medium, profile: profile)
        let bluez = BlueZRadio(BlueZConfiguration(bus: bus.address))
        var machine = Machine(bus: bus, simulator: simulator, bluez: bluez)
        if isBridged {
            let server = try EmulatorBridge(
                radios: .shared(bluez),
                configuration: BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: 0)))
            machine.bridge = (server, BridgeRadio(try await server.start()))
        }
        return machine
    }

    var bench: ContractBench {
        ContractBench(
            name: name,
            peripheral: host.radio,
            central: phone.radio,
            secondCentral: secondPhone.radio,
            controls: self,
            patience: .seconds(20),
            silence: .seconds(2)
        )
    }

    /// Ends the radios and the daemons.
    func close() async {
        for machine in [host, phone, secondPhone] {
            if let (server, client) = machine.bridge {
                await client.shutdown()
                await server.stop()
            }
            await machine.bluez.shutdown()
            await machine.simulator.stop()
            machine.bus.stop()
        }
    }

    var abilities: Set<ContractAbility> { Set(ContractAbility.allCases) }

    func perform(_ intervention: ContractIntervention) async throws {
        switch intervention {
        case .setPower(let isOn, let role):
            await machine(role).simulator.setPowered(isOn, adapter: "hci0")
        case .setPlugged(true, let role):
            await machine(role).simulator.plug("hci0")
        case .setPlugged(false, let role):
            await machine(role).simulator.unplug("hci0")
        case .restartService(let role):
            try await machine(role).simulator.restart(downFor: .milliseconds(300))
        case .dropLink:
            try medium.dropLink(between: phone.simulated, and: host.simulated)
        case .setRSSI(let rssi):
            medium.setRSSI(rssi, between: try host.simulated, and: try phone.simulated)
        case .setInRange(let inRange):
            medium.setInRange(inRange, between: try host.simulated, and: try phone.simulated)
        case .setMTU(let mtu):
            medium.setMTU(mtu, between: try host.simulated, and: try phone.simulated)
        }
    }

    private func machine(_ role: ContractRole) -> Machine {
        switch role {
        case .peripheral: host
        case .central: phone
        }
    }

    /// Each bench is three daemons and three buses in real time: so many at once as leave each its time on two cores.
    private static let turns = Turns(32)

    /// Runs one case on a bench of its own.
    static func check(
        _ contractCase: ContractCase,
        on profile: BehaviourProfile = .bluez566,
        isBridged: Bool = false
    ) async throws -> (ContractCase.Outcome, linksLeft: [SimulatedLink]) {
        try await contractCase.check(within: turns) { try await make(profile, isBridged: isBridged) }
    }
}
