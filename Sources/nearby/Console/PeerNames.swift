// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// How people read who a device is.
enum PeerNames {
    /// The address where the radio's own name ends in one, as BlueZ's object paths do; else that name.
    static func text(_ peer: PeerIdentifier) -> String {
        let bytes = peer.rawValue.utf8
        let last = bytes.suffix(from: bytes.lastIndex(of: UInt8(ascii: "/")) ?? bytes.startIndex)
        let (prefix, underscore, colon) = ("/dev_".utf8, UInt8(ascii: "_"), UInt8(ascii: ":"))
        if last.starts(with: prefix),
            let address = BluetoothAddress(
                String(decoding: last.dropFirst(prefix.count).map { $0 == underscore ? colon : $0 }, as: UTF8.self))
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
