// SPDX-License-Identifier: MIT

package import SimulatedRadio

/// A bench of simulated radios.
package struct SimulatedBench: ContractControls {
    package let clock: ManualClock
    package let medium: SimulatedMedium
    package let host: SimulatedRadio
    package let phone: SimulatedRadio
    package let secondPhone: SimulatedRadio

    package static func make(
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

    package var bench: ContractBench {
        ContractBench(
            name: "SimulatedRadio",
            peripheral: host,
            central: phone,
            secondCentral: secondPhone,
            controls: self
        )
    }

    package var abilities: Set<ContractAbility> { Set(ContractAbility.allCases) }

    package func perform(_ intervention: ContractIntervention) async throws {
        switch intervention {
        case .setPower(let isOn, let role): radio(role).setPowered(isOn)
        case .setPlugged(true, let role): radio(role).plug()
        case .setPlugged(false, let role): radio(role).unplug()
        case .restartService(let role): radio(role).restartService(downFor: .milliseconds(500))
        case .dropLink: try medium.dropLink(between: phone, and: host)
        case .setRSSI(let rssi): medium.setRSSI(rssi, between: host, and: phone)
        case .setInRange(let inRange): medium.setInRange(inRange, between: host, and: phone)
        case .setMTU(let mtu): medium.setMTU(mtu, between: host, and: phone)
        }
    }

    package func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        try await clock.run(body)
    }

    private func radio(_ role: ContractRole) -> SimulatedRadio {
        switch role {
        case .peripheral: host
        case .central: phone
        }
    }
}

extension SimulatedMedium {
    /// Takes down the link between these two, which has to be there: a case that drops nothing shows nothing.
    package func dropLink(between one: SimulatedRadio, and other: SimulatedRadio) throws {
        try require(drop(between: one, and: other), "there is no link to be dropped")
    }
}
