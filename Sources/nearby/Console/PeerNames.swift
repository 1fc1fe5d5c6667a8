// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// How people read who a device is.
enum PeerNames {
    /// The address where the radio's own name ends in one, as BlueZ's object paths do; else that name.
    static func text(_ peer: PeerIdentifier) -> String {
        let last = peer.rawValue.split(separator: "/").last ?? ""
        if last.hasPrefix("dev_"),
            let address = BluetoothAddress(String(last.dropFirst(4).map { $0 == "_" ? ":" : $0 }))
        {
            return address.description
        }
        return PlainText.printable(peer.rawValue)
    }

    /// The name with the address behind it.
    static func text(_ candidate: NearbyCandidate) -> String {
        let address = candidate.address?.description ?? text(candidate.peer)
        guard let name = candidate.name, !name.isEmpty else { return address }
        return "\(PlainText.printable(name)) (\(address))"
    }

    static func rssi(_ rssi: Int?) -> String { rssi.map { "\($0) dBm" } ?? "-" }
}
