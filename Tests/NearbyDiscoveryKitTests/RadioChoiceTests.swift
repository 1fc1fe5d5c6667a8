// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import NearbyDiscoveryKit

/// This machine's adapter, else the bridge that is named, and never a simulation.
@Suite struct RadioChoiceTests {
    private let medium = SimulatedMedium(clock: ContinuousClock())

    private func choose(_ local: SimulatedRadio?) async throws -> any Radio {
        try await DefaultRadio.choose(local: local, bridge: "127.0.0.1:1", token: nil)
    }

    @Test func anAdapterIsUsedWhateverItsState() async throws {
        let radio = medium.addAdapter()
        #expect(try await choose(radio) as? SimulatedRadio === radio)
        radio.setPowered(false)
        #expect(try await choose(radio) as? SimulatedRadio === radio)
    }

    @Test func withoutAnAdapterItIsTheBridge() async throws {
        let radio = medium.addAdapter()
        radio.unplug()
        #expect(!(try await choose(radio) is SimulatedRadio))
        #expect(!(try await choose(nil) is SimulatedRadio))
    }

    @Test func aWrongAddressIsToldEvenWhereItIsNotNeeded() async throws {
        let radio = medium.addAdapter()
        await #expect(throws: NearbyError.self) {
            try await DefaultRadio.choose(local: radio, bridge: "here:there", token: nil)
        }
        #expect(throws: NearbyError.self) { try DefaultRadio.bridge("h:0") }
    }

    @Test func theFacadeSaysThatItUsesABridge() async throws {
        let client = NearbyDiscoveryClient(radio: try DefaultRadio.bridge("127.0.0.1:1"))
        #expect(client.usingBridge)
        #expect(!NearbyDiscoveryClient(radio: medium.addAdapter()).usingBridge)
    }

    @Test func whatIsMissingComesWithTheAdviceToUseABridge() {
        let error = NearbyError(
            BluetoothError(.adapterNotFound, "there is no Bluetooth adapter", advice: "Plug one in."))
        let advice = error.namingBridges().advice
        #expect(advice?.hasPrefix("Plug one in. ") == true && advice?.contains("NEARBY_BRIDGE") == true)
        let other = NearbyError(BluetoothError(.poweredOff, "off", advice: "Switch it on."))
        #expect(other.namingBridges() == other)
    }
}
