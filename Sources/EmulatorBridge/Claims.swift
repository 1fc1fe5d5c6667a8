// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

/// Which client serves which services on a shared adapter.
///
/// Whoever scans sees the adapter, not the client behind it: two that serve one UUID could not be told apart, and the
/// second one's centrals would end at the first. So the second is refused.
final class Claims: Sendable {
    private let owners = Locked<[BluetoothUUID: [Int: Int]]>([:])

    /// Claims all of them or none.
    ///
    /// - Returns: whether nobody else has one of them.
    func claim(_ services: Set<BluetoothUUID>, for client: Int) -> Bool {
        owners.withLock { owners in
            for service in services where owners[service]?.keys.contains(where: { $0 != client }) == true {
                return false
            }
            for service in services { owners[service, default: [:]][client, default: 0] += 1 }
            return true
        }
    }

    /// Whether another client serves something on this adapter.
    func hasOthers(than client: Int) -> Bool {
        owners.withLock { $0.values.contains { $0.keys.contains { $0 != client } } }
    }

    func release(_ services: Set<BluetoothUUID>, for client: Int) {
        owners.withLock { owners in
            for service in services {
                let left = (owners[service]?[client] ?? 0) - 1
                owners[service]?[client] = left > 0 ? left : nil
                if owners[service]?.isEmpty == true { owners[service] = nil }
            }
        }
    }
}
