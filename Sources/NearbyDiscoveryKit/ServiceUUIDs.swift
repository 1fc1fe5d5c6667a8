// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

/// The protocol's UUIDs as the radio's type.
enum ServiceUUIDs {
    static let service = constant(NearbyService.service)
    static let message = constant(NearbyService.message)
    static let hello = constant(NearbyService.hello)
    static let channel = constant(NearbyService.channel)

    private static func constant(_ text: String) -> BluetoothUUID {
        guard let uuid = BluetoothUUID(text) else { preconditionFailure("not a UUID: \(text)") }
        return uuid
    }
}
