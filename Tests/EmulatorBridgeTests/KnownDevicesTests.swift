// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@testable import EmulatorBridge

/// Which devices a client can connect to, where more have been heard than are kept.
@Suite struct KnownDevicesTests {
    private let start = ContinuousClock.now

    private func discovery(_ device: Int, second: Int) -> Discovery {
        Discovery(
            peer: PeerIdentifier("\(device)"), advertisement: Advertisement(), rssi: nil,
            time: start.advanced(by: .seconds(second)))
    }

    /// As many as are kept, each heard a second after the one before.
    private func full() -> KnownDevices {
        var devices = KnownDevices()
        for device in 1...Limits.knownDevices { devices.note(discovery(device, second: device), keeping: []) }
        return devices
    }

    @Test func theOneThatHasBeenSilentLongestMakesRoom() {
        var devices = full()
        devices.note(discovery(1, second: 5_000), keeping: [])
        devices.note(discovery(9_999, second: 5_001), keeping: [])
        #expect(devices["9999"] == PeerIdentifier("9999"))
        #expect(devices["1"] != nil, "heard again")
        #expect(devices["2"] == nil)
        #expect(devices.addresses.count == Limits.knownDevices)
    }

    @Test func whatIsConnectedMakesNoRoom() {
        var devices = full()
        devices.note(discovery(9_999, second: 5_000), keeping: ["1", "2"])
        #expect(devices["1"] != nil && devices["2"] != nil)
        #expect(devices["3"] == nil)
    }

    @Test func whatIsGoneIsForgottenByAllItsAddresses() {
        var devices = KnownDevices()
        devices.note(discovery(1, second: 1), keeping: [])
        devices.note(discovery(2, second: 2), keeping: [])
        #expect(devices.forget(PeerIdentifier("1")) == ["1"])
        #expect(devices.addresses == ["2"])
    }
}
