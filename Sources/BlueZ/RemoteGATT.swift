// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// What we follow of an `org.bluez.GattService1` object of a peer.
struct GattService1: Sendable, Hashable {
    var uuid: BluetoothUUID?
    var isPrimary = true

    mutating func apply(_ changed: [String: DBusValue]) {
        if let uuid = changed["UUID"]?.asString { self.uuid = BluetoothUUID(uuid) }
        if let primary = changed["Primary"]?.asBool { isPrimary = primary }
    }
}

/// What we follow of an `org.bluez.GattCharacteristic1` object of a peer. `Value` is passed on, never kept.
struct GattCharacteristic1: Sendable, Hashable {
    var uuid: BluetoothUUID?
    var properties: CharacteristicProperties = []
    /// The link's ATT MTU (BlueZ 5.62 and later).
    var mtu: Int?

    /// A link's before an exchange (Core Specification, Vol 3, Part G, 5.2.1).
    static let defaultMTU = 23

    mutating func apply(_ changed: [String: DBusValue]) {
        if let uuid = changed["UUID"]?.asString { self.uuid = BluetoothUUID(uuid) }
        if let flags = changed["Flags"]?.asStrings { properties = CharacteristicProperties(flags: flags) }
        if let mtu = changed["MTU"]?.asUInt16 { self.mtu = Int(mtu) }
    }
}

extension CharacteristicProperties {
    private static let names: [(String, CharacteristicProperties)] = [
        ("broadcast", .broadcast), ("read", .read), ("write-without-response", .writeWithoutResponse),
        ("write", .write), ("notify", .notify), ("indicate", .indicate),
        ("authenticated-signed-writes", .authenticatedSignedWrites), ("extended-properties", .extendedProperties),
    ]

    /// From BlueZ's names; flags that are not properties (`encrypt-read`, …) are left out.
    init(flags: [String]) {
        self = flags.reduce(into: []) { result, flag in
            if let known = Self.names.first(where: { $0.0 == flag }) { result.insert(known.1) }
        }
    }

    /// As BlueZ's names.
    var flags: [String] { Self.names.filter { contains($0.1) }.map(\.0) }
}

/// The calls of the peer's `org.bluez.GattCharacteristic1` that we make.
extension GattCharacteristic1 {
    static func read(_ path: ObjectPath) -> DBusCall {
        call(path, "ReadValue", [.variantDictionary([:])], returning: "ay", timeout: Limits.attribute)
    }

    static func mtu(_ path: ObjectPath) -> DBusCall {
        DBusCall(
            BlueZName.service, path, BlueZName.properties, "Get",
            [.string(BlueZName.gattCharacteristic), .string("MTU")], returning: "v", timeout: Limits.attribute)
    }

    static func write(_ path: ObjectPath, _ value: [UInt8], _ type: WriteType) -> DBusCall {
        let name = type == .withResponse ? "request" : "command"
        return call(
            path, "WriteValue", [.bytes(value), .variantDictionary(["type": .string(name)])],
            timeout: Limits.attribute)
    }

    static func startNotify(_ path: ObjectPath) -> DBusCall {
        call(path, "StartNotify", timeout: Limits.attribute)
    }

    static func stopNotify(_ path: ObjectPath) -> DBusCall { call(path, "StopNotify", timeout: Limits.stop) }

    private static func call(
        _ path: ObjectPath,
        _ member: String,
        _ body: [DBusValue] = [],
        returning: String = "",
        timeout: Duration
    ) -> DBusCall {
        DBusCall(
            BlueZName.service, path, BlueZName.gattCharacteristic, member, body, returning: returning,
            timeout: timeout)
    }
}
