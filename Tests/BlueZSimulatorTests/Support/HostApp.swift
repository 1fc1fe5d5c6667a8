// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import SimulatedRadio
import Testing

@testable import BlueZSimulator

/// An object of an application, with the properties it is given and a log of what it is asked.
///
/// `@unchecked Sendable`: everything mutable is guarded by `lock`.
final class AppObject: ExportedObject, @unchecked Sendable {
    let interfaces: [ExportedInterface]
    let calls = Log<MethodCall>()
    let sets = Log<(name: String, value: DBusValue)>()
    private let lock = Lock()
    private var properties: [String: DBusValue]
    private var answer: @Sendable (MethodCall) -> Void

    init(
        _ interface: String, _ properties: [String: DBusValue], methods: [ExportedInterface.Method] = [],
        answer: @escaping @Sendable (MethodCall) -> Void = { $0.reply() }
    ) {
        interfaces = [
            ExportedInterface(
                "org.bluez." + interface, methods: methods,
                properties: properties.map {
                    .init($0.key, $0.value.signature, access: .readWrite)
                })
        ]
        self.properties = properties
        self.answer = answer
    }

    func onCall(_ answer: @escaping @Sendable (MethodCall) -> Void) {
        lock.withLock { self.answer = answer }
    }

    func handle(_ call: MethodCall) {
        let answer = lock.withLock { self.answer }
        calls.add(call)
        answer(call)
    }

    func property(_ name: String, of interface: String) -> DBusValue? {
        lock.withLock { properties[name] }
    }

    func setProperty(_ name: String, of interface: String, to value: DBusValue) -> DBusError? {
        lock.withLock { properties[name] = value }
        sets.add((name, value))
        return nil
    }
}

/// An application that registers a service with one characteristic, and an advertisement, on a connection of its own.
final class HostApp: Sendable {
    static let root: ObjectPath = "/app"
    static let servicePath: ObjectPath = "/app/service0"
    static let characteristicPath: ObjectPath = "/app/service0/char0"
    static let advertisementPath: ObjectPath = "/advertisement"

    let connection: DBusConnection
    let characteristic: AppObject
    let advertisement: AppObject
    private let manager: ObjectPath

    static let characteristicMethods: [ExportedInterface.Method] = [
        .init("ReadValue", "a{sv}", returns: "ay"), .init("WriteValue", "aya{sv}"), .init("StartNotify"),
        .init("StopNotify"), .init("AcquireNotify", "a{sv}", returns: "hq"),
        .init("AcquireWrite", "a{sv}", returns: "hq"),
    ]

    init(
        _ bus: PrivateBus, adapter: ObjectPath = Fixture.adapterPath,
        service: [String: DBusValue] = [
            "UUID": .string(Fixture.service.longDescription), "Primary": .bool(true),
        ],
        characteristic overrides: [String: DBusValue?] = [:],
        advertisement advertised: [String: DBusValue?] = [:]
    ) async throws {
        connection = try await patiently { try await DBusConnection.open(bus.busAddress) }
        manager = adapter
        var properties: [String: DBusValue] = [
            "UUID": .string(Fixture.message.longDescription), "Service": .objectPath(Self.servicePath),
            "Flags": .strings(["read", "write", "notify"]),
        ]
        for (key, value) in overrides { properties[key] = value }
        var advertisementProperties: [String: DBusValue] = [
            "Type": .string("peripheral"), "ServiceUUIDs": .strings([Fixture.service.longDescription]),
            "LocalName": .string("host"), "MinInterval": .uint32(20), "MaxInterval": .uint32(20),
        ]
        for (key, value) in advertised { advertisementProperties[key] = value }
        characteristic = AppObject(
            "GattCharacteristic1", properties, methods: Self.characteristicMethods
        ) { call in
            switch call.member {
            case "ReadValue": call.reply([.bytes(Array("read".utf8))])
            case "AcquireNotify", "AcquireWrite":
                call.fail(name: "org.bluez.Error.NotSupported", message: "no sockets")
            default: call.reply()
            }
        }
        advertisement = AppObject("LEAdvertisement1", advertisementProperties, methods: [.init("Release")])
        try await connection.exportObjectManager(at: Self.root)
        try await connection.export(AppObject("GattService1", service), at: Self.servicePath)
        try await connection.export(characteristic, at: Self.characteristicPath)
        try await connection.export(advertisement, at: Self.advertisementPath)
    }

    func call(_ interface: String, _ member: String, _ body: [DBusValue]) async throws {
        _ = try await connection.call("org.bluez", manager, "org.bluez." + interface, member, body)
    }

    func register(root: ObjectPath = HostApp.root) async throws {
        try await call(
            "GattManager1", "RegisterApplication", [.objectPath(root), .variantDictionary([String: DBusValue]())])
    }

    func advertise(at path: ObjectPath = HostApp.advertisementPath) async throws {
        try await call(
            "LEAdvertisingManager1", "RegisterAdvertisement",
            [.objectPath(path), .variantDictionary([String: DBusValue]())])
    }

    /// One that serves and advertises.
    static func serving(
        _ bus: PrivateBus, characteristic: [String: DBusValue?] = [:]
    ) async throws -> HostApp {
        let app = try await HostApp(bus, characteristic: characteristic)
        try await app.register()
        try await app.advertise()
        return app
    }

    /// Says that properties of the advertisement have changed; returns once bluetoothd has read it.
    func announce(_ changed: [String: DBusValue]) async throws {
        try await connection.emitPropertiesChanged(
            Self.advertisementPath, "org.bluez.LEAdvertisement1", changed: changed.map { ($0.key, $0.value) })
        // It reads what a connection sends in its order.
        _ = try await connection.call(
            "org.bluez", manager, "org.freedesktop.DBus.Properties", "Get",
            [.string("org.bluez.Adapter1"), .string("Address")])
    }

    func notify(_ value: [UInt8]) async throws {
        try await connection.emitPropertiesChanged(
            Self.characteristicPath, "org.bluez.GattCharacteristic1", changed: [("Value", .bytes(value))])
    }

    func invalidateValue() async throws {
        try await connection.emitPropertiesChanged(
            Self.characteristicPath, "org.bluez.GattCharacteristic1", changed: [], invalidated: ["Value"])
    }

    /// Waits until the characteristic is asked for this.
    func asked(_ member: String, from start: Int = 0) async throws -> MethodCall {
        try await characteristic.calls.wait(from: start) { $0.member == member }
    }
}

/// A phone that uses our host over the air, through the radio's own contract.
struct Phone {
    let radio: SimulatedRadio
    let connection: any PeripheralConnection
    let characteristic: RemoteCharacteristic

    /// Scans for the host, connects and finds the message characteristic.
    init(_ radio: SimulatedRadio) async throws {
        self.radio = radio
        // The scan goes on until the link is there: on a manual clock the device could be forgotten in between.
        let scan = try await radio.scan(for: ScanFilter(services: [Fixture.service]))
        var found: PeerIdentifier?
        for await case .discovered(let discovery) in scan.events {
            found = discovery.peer
            break
        }
        guard let found else { throw BluetoothError(.peerNotFound, "the scan ended") }
        connection = try await radio.connect(to: found, timeout: .seconds(10))
        await scan.stop()
        let services = try await connection.discoverServices(awaiting: Fixture.message)
        guard
            let message = services.flatMap(\.characteristics).first(where: { $0.uuid == Fixture.message })
        else { throw BluetoothError(.attributeNotFound, "no message characteristic") }
        characteristic = message
    }

    func write(_ value: [UInt8]) async throws {
        try await connection.write(value, to: characteristic, type: .withResponse)
    }
}
