// SPDX-License-Identifier: MIT

import BluetoothLE

/// The devices that one client's scans have reported, and that it may connect to, by their address.
///
/// Past the limit the one that has been silent longest makes room. Phones change their address every quarter of an hour:
/// a client that scans for a day would else have its list full of those, and could connect to nothing new.
struct KnownDevices {
    private struct Device {
        let peer: PeerIdentifier
        let heard: ContinuousClock.Instant
    }

    private var devices: [String: Device] = [:]

    var addresses: Set<String> { Set(devices.keys) }

    subscript(address: String) -> PeerIdentifier? { devices[address]?.peer }

    /// - Parameter linked: The addresses of devices with a link: what is connected advertises nothing, and is no less
    ///   wanted for that.
    mutating func note(_ discovery: Discovery, keeping linked: @autoclosure () -> Set<String>) {
        let address = discovery.bridgeAddress
        if devices[address] == nil, devices.count >= Limits.knownDevices {
            let kept = linked()
            let silent = devices.filter { !kept.contains($0.key) }.min { $0.value.heard < $1.value.heard }
            if let silent { devices[silent.key] = nil }
        }
        devices[address] = Device(peer: discovery.peer, heard: discovery.time)
    }

    /// - Returns: the addresses that the device was known by.
    mutating func forget(_ peer: PeerIdentifier) -> [String] {
        let addresses = devices.filter { $0.value.peer == peer }.keys.sorted()
        for address in addresses { devices[address] = nil }
        return addresses
    }
}
