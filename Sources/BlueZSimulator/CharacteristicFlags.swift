// SPDX-License-Identifier: MIT

internal import BluetoothLE

/// A characteristic's `Flags`: parse_chrc_flags in BlueZ's src/gatt-database.c, and the other way round.
struct CharacteristicFlags: Sendable, Hashable {
    let properties: CharacteristicProperties
    /// Reads and writes want a paired peer, which no simulated central is.
    let needsEncryptionToRead: Bool
    let needsEncryptionToWrite: Bool

    /// - Returns: nil for a flag that bluetoothd does not know, or none at all.
    init?(_ flags: [String]) {
        guard !flags.isEmpty else { return nil }
        var properties: CharacteristicProperties = []
        var encryptedRead = false
        var encryptedWrite = false
        for flag in flags {
            switch flag {
            case "broadcast": properties.insert(.broadcast)
            case "read": properties.insert(.read)
            case "write-without-response": properties.insert(.writeWithoutResponse)
            case "write": properties.insert(.write)
            case "notify": properties.insert(.notify)
            case "indicate": properties.insert(.indicate)
            case "authenticated-signed-writes": properties.insert(.authenticatedSignedWrites)
            case "extended-properties", "reliable-write", "writable-auxiliaries":
                properties.insert(.extendedProperties)
            case "encrypt-read", "encrypt-authenticated-read", "secure-read":
                properties.insert(.read)
                encryptedRead = true
            case "encrypt-write", "encrypt-authenticated-write", "secure-write":
                properties.insert(.write)
                encryptedWrite = true
            case "encrypt-notify", "encrypt-authenticated-notify", "secure-notify": properties.insert(.notify)
            case "encrypt-indicate", "encrypt-authenticated-indicate", "secure-indicate": properties.insert(.indicate)
            case "authorize": break
            default: return nil
            }
        }
        self.properties = properties
        needsEncryptionToRead = encryptedRead
        needsEncryptionToWrite = encryptedWrite
    }

    /// The flags of a remote characteristic, in BlueZ's order.
    static func names(_ properties: CharacteristicProperties) -> [String] {
        let table: [(CharacteristicProperties, String)] = [
            (.broadcast, "broadcast"), (.read, "read"), (.writeWithoutResponse, "write-without-response"),
            (.write, "write"), (.notify, "notify"), (.indicate, "indicate"),
            (.authenticatedSignedWrites, "authenticated-signed-writes"), (.extendedProperties, "extended-properties"),
        ]
        return table.filter { properties.contains($0.0) }.map(\.1)
    }
}
