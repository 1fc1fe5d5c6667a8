// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// What we follow of an `org.bluez.Device1` object.
struct Device1: Sendable, Hashable {
    /// What one message changed.
    struct Change: OptionSet, Sendable, Hashable {
        let rawValue: UInt8
        static let connected = Self(rawValue: 1 << 0)
        static let servicesResolved = Self(rawValue: 1 << 1)
        /// Something that only the air can have brought: the device was heard.
        static let heard = Self(rawValue: 1 << 2)
        /// Something that a scan reports.
        static let advertisement = Self(rawValue: 1 << 3)
        /// A reading of the RSSI.
        static let rssi = Self(rawValue: 1 << 4)
    }

    var address: BluetoothAddress?
    var advertisement = Advertisement()
    var rssi: Int?
    var connected = false
    var paired = false
    var servicesResolved = false
    /// Whether `UUIDs` may be from a connection, which nothing that is advertised changes any more.
    private(set) var remembersServices = false

    /// Merges a message's properties, which arrive piecemeal (rule 18).
    mutating func apply(_ changed: [String: DBusValue], invalidated: [String] = []) -> Change {
        var change: Change = []
        if let text = changed["Address"]?.asString {
            let kind: BluetoothAddress.Kind = changed["AddressType"]?.asString == "random" ? .random : .public
            address = BluetoothAddress(text, kind: kind)
        }
        for (name, value) in changed {
            switch name {
            case "RSSI":
                guard let reading = Self.decibels(value) else { break }
                rssi = reading
                change.formUnion([.heard, .rssi])
            case "Name":
                // Not `Alias`: where a device has no name, that is its address.
                advertisement.localName = value.asString?.clipped(toBytes: Limits.nameBytes)
                change.insert(.advertisement)
            case "UUIDs":
                guard let uuids = value.asStrings else { break }
                advertisement.serviceUUIDs = Set(uuids.prefix(Limits.deviceUUIDs).compactMap { BluetoothUUID($0) })
                change.insert(.advertisement)
            case "ServiceData":
                guard let data = Self.serviceData(value) else { break }
                advertisement.serviceData = data
                change.formUnion([.heard, .advertisement])
            case "ManufacturerData":
                guard let data = Self.manufacturerData(value) else { break }
                advertisement.manufacturerData = data
                change.formUnion([.heard, .advertisement])
            case "TxPower":
                advertisement.txPower = Self.decibels(value)
                change.formUnion([.heard, .advertisement])
            case "AdvertisingFlags", "AdvertisingData":
                change.insert(.heard)
            case "Connected":
                guard let value = value.asBool else { break }
                if value != connected { change.insert(.connected) }
                connected = value
            case "Paired": paired = value.asBool ?? paired
            case "ServicesResolved":
                guard let value = value.asBool else { break }
                if value != servicesResolved { change.insert(.servicesResolved) }
                servicesResolved = value
                if value { remembersServices = true }
            default: break
            }
        }
        for name in invalidated {
            switch name {
            // At the end of a discovery (rule 18): neither a reading nor a sign of life.
            case "RSSI": rssi = nil
            case "TxPower": advertisement.txPower = nil
            case "ManufacturerData": advertisement.manufacturerData = [:]
            case "ServiceData": advertisement.serviceData = [:]
            default: break
            }
        }
        return change
    }

    /// The device was there before anybody of ours listened: nothing tells what it was seen with.
    mutating func wasThere() {
        if !advertisement.serviceUUIDs.isEmpty { remembersServices = true }
    }

    /// dBm as HCI has it, a signed byte; whatever integer the message brought, nobody above has to think of others.
    private static func decibels(_ value: DBusValue) -> Int? {
        value.asInteger.flatMap { (-128...127).contains($0) ? $0 : nil }
    }

    private static func serviceData(_ value: DBusValue) -> [BluetoothUUID: [UInt8]]? {
        guard let entries = value.asEntries else { return nil }
        var result: [BluetoothUUID: [UInt8]] = [:]
        for entry in entries.prefix(Limits.dataElements) {
            guard let uuid = entry.key.asString.flatMap({ BluetoothUUID($0) }), let data = entry.value.asBytes,
                data.count <= Limits.dataBytes
            else { continue }
            result[uuid] = data
        }
        return result
    }

    private static func manufacturerData(_ value: DBusValue) -> [UInt16: [UInt8]]? {
        guard let entries = value.asEntries else { return nil }
        var result: [UInt16: [UInt8]] = [:]
        for entry in entries.prefix(Limits.dataElements) {
            guard let company = entry.key.asUInt16, let data = entry.value.asBytes, data.count <= Limits.dataBytes
            else { continue }
            result[company] = data
        }
        return result
    }
}

/// The calls of `org.bluez.Device1` that we make.
extension Device1 {
    /// - Parameter timeout: Ours. bluetoothd's own is about 20 s with a device that does not answer, 40 s at most.
    static func connect(_ device: ObjectPath) -> DBusCall {
        DBusCall(BlueZName.service, device, BlueZName.device, "Connect", returning: "", timeout: .seconds(60))
    }

    static func isConnected(_ device: ObjectPath) -> DBusCall {
        DBusCall(
            BlueZName.service, device, BlueZName.properties, "Get",
            [.string(BlueZName.device), .string("Connected")], returning: "v", timeout: Limits.connectedLag)
    }

    /// Also calls off a `Connect` under way.
    static func disconnect(_ device: ObjectPath) -> DBusCall {
        DBusCall(
            BlueZName.service, device, BlueZName.device, "Disconnect", returning: "", timeout: Limits.disconnect
        )
    }

    /// The reason in the signal `Disconnected` (BlueZ 5.83 and later).
    static func disconnectReason(_ body: [DBusValue]) -> DisconnectReason? {
        guard let name = body.first?.asString else { return nil }
        switch name {
        case "org.bluez.Reason.Timeout": return .timeout
        case "org.bluez.Reason.Local": return .local
        case "org.bluez.Reason.Remote", "org.bluez.Reason.Authentication": return .remote
        case "org.bluez.Reason.Suspend": return .adapterLost
        default: return .unknown
        }
    }
}
