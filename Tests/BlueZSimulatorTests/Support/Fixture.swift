// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import SimulatedRadio
import Testing

@testable import BlueZSimulator

/// A simulator on a bus of its own, and a client of it that shares no code with the product's BlueZ room.
struct Fixture {
    let bus: PrivateBus
    let medium: SimulatedMedium
    let simulator: BlueZSimulator
    let client: Client

    static let adapterPath: ObjectPath = "/org/bluez/hci0"
    static let service = BluetoothUUID("a1b2c3d4-e5f6-7890-abcd-ef1234567890") ?? 0x1234
    static let message = BluetoothUUID("b2c3d4e5-f6a7-8901-bcde-f12345678901") ?? 0x1235

    /// - Parameter clock: The real one unless the test is about time.
    init(
        adapters: Int = 1,
        profile: BehaviourProfile = .bluez566,
        clock: any MonotonicClock = ContinuousClock(),
        conditions: Conditions = Conditions()
    ) async throws {
        bus = try await PrivateBus()
        medium = SimulatedMedium(clock: clock, conditions: conditions)
        simulator = try await Self.start(bus, medium, adapters, profile)
        client = try await Client(bus)
    }

    private static func start(
        _ bus: PrivateBus, _ medium: SimulatedMedium, _ adapters: Int, _ profile: BehaviourProfile
    ) async throws -> BlueZSimulator {
        try await patiently {
            try await BlueZSimulator.start(on: bus.busAddress, medium: medium, adapters: adapters, profile: profile)
        }
    }

    /// Kills the daemon and brings it back.
    func restart() async throws {
        let simulator = simulator
        await simulator.crash()
        try await patiently { try await simulator.revive() }
    }

    /// Waits until a Connect is under way.
    func connecting(_ path: ObjectPath) async throws {
        while await simulator.isConnecting(path) == false { try await Task.sleep(for: .milliseconds(1)) }
    }

    /// A phone that advertises and serves the message characteristic.
    func advertise(
        _ phone: SimulatedRadio,
        name: String? = "phone",
        services: [BluetoothUUID] = [Fixture.service],
        properties: CharacteristicProperties = [.read, .write, .notify],
        manufacturerData: [UInt16: [UInt8]] = [:]
    ) async throws -> any PeripheralSession {
        try await phone.serve(
            [LocalService(Fixture.service, characteristics: [LocalCharacteristic(Fixture.message, properties)])],
            advertising: AdvertisementRequest(
                localName: name, serviceUUIDs: services, manufacturerData: manufacturerData,
                interval: .milliseconds(20) ... .milliseconds(20)))
    }

    static func devicePath(_ radio: SimulatedRadio, adapter: String = "hci0") -> ObjectPath {
        let element = "dev_" + String(radio.address.description.map { $0 == ":" ? "_" : $0 })
        return ObjectPath(validating: "/org/bluez/\(adapter)/\(element)") ?? .root
    }
}

/// A D-Bus client that knows org.bluez's names and remembers every signal.
final class Client: Sendable {
    let connection: DBusConnection
    let signals: SignalLog

    init(_ bus: PrivateBus) async throws {
        connection = try await patiently { try await DBusConnection.open(bus.busAddress) }
        let log = SignalLog()
        signals = log
        _ = try await connection.addMatch(MatchRule(sender: "org.bluez")) { message in log.add(message) }
    }

    @discardableResult
    func call(
        _ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue] = [],
        timeout: Duration = .seconds(10)
    ) async throws -> [DBusValue] {
        let name = interface.contains(".") ? interface : "org.bluez." + interface
        return try await connection.call("org.bluez", path, name, member, body, timeout: timeout)
    }

    func adapter(_ member: String, _ body: [DBusValue] = []) async throws {
        try await call(Fixture.adapterPath, "Adapter1", member, body)
    }

    func get(_ path: ObjectPath, _ interface: String, _ property: String) async throws -> DBusValue? {
        try await call(
            path, "org.freedesktop.DBus.Properties", "Get", [.string("org.bluez." + interface), .string(property)]
        ).first?.unwrapped
    }

    func set(_ path: ObjectPath, _ interface: String, _ property: String, _ value: DBusValue) async throws {
        try await call(
            path, "org.freedesktop.DBus.Properties", "Set",
            [.string("org.bluez." + interface), .string(property), value.wrapped])
    }

    func objects() async throws -> [ObjectPath: [String: [String: DBusValue]]] {
        try await call(.root, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects").first?.asManagedObjects ?? [:]
    }

    /// The error that a call answers with, as "Name: text" without the prefix org.bluez.Error.
    func error(_ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue] = []) async -> String? {
        do {
            try await call(path, interface, member, body)
            return nil
        } catch let error as DBusError {
            return Self.text(error)
        } catch {
            return "\(error)"
        }
    }

    private static func text(_ error: DBusError) -> String {
        String((error.name ?? "").trimmingPrefix("org.bluez.Error.")) + ": " + error.message
    }

    /// Sends a call now, so that another can follow directly; the log gets what `error` gives.
    func send(_ path: ObjectPath, _ interface: String, _ member: String) -> Log<String?> {
        let answers = Log<String?>()
        connection.send(call: DBusCall("org.bluez", path, "org.bluez." + interface, member)) { result in
            switch result {
            case .success: answers.add(nil)
            case .failure(let error): answers.add(Self.text(error))
            }
        }
        return answers
    }

    /// Waits until a property has been signalled with a value that satisfies.
    @discardableResult
    func property(
        _ path: ObjectPath, _ interface: String, _ name: String, from start: Int = 0,
        where satisfies: @escaping @Sendable (DBusValue) -> Bool = { _ in true }
    ) async throws -> DBusValue? {
        let message = try await signals.wait(from: start) { message in
            message.changed(path, interface, name).map(satisfies) == true
        }
        return message.changed(path, interface, name)
    }

    func appeared(_ path: ObjectPath, from start: Int = 0) async throws {
        _ = try await signals.wait(from: start) { message in
            message.member == "InterfacesAdded" && message.body.first?.asObjectPath == path
        }
    }

    func vanished(_ path: ObjectPath, from start: Int = 0) async throws {
        _ = try await signals.wait(from: start) { message in
            message.member == "InterfacesRemoved" && message.body.first?.asObjectPath == path
        }
    }

    /// Scans until the device is on the bus.
    func discover(_ radio: SimulatedRadio) async throws -> ObjectPath {
        let path = Fixture.devicePath(radio)
        try await adapter("StartDiscovery")
        try await appeared(path)
        return path
    }

    /// Connects and waits for the services; gives the message characteristic's path.
    func connect(_ device: ObjectPath) async throws -> ObjectPath {
        let start = signals.count
        try await call(device, "Device1", "Connect")
        try await property(device, "Device1", "ServicesResolved", from: start) { $0.asBool == true }
        let uuid = Fixture.message.longDescription
        let found = try await objects().first { $0.value["org.bluez.GattCharacteristic1"]?["UUID"]?.asString == uuid }
        return try #require(found?.key)
    }
}

extension DBusMessage {
    /// The value that a PropertiesChanged of this path and interface has for a property.
    func changed(_ path: ObjectPath, _ interface: String, _ name: String) -> DBusValue? {
        guard member == "PropertiesChanged", self.path == path, body.count == 3,
            body[0].asString == "org.bluez." + interface
        else { return nil }
        return body[1].asDictionary?[name]
    }

    func invalidates(_ path: ObjectPath, _ interface: String, _ name: String) -> Bool {
        member == "PropertiesChanged" && self.path == path && body.count == 3
            && body[0].asString == "org.bluez." + interface && body[2].asStrings?.contains(name) == true
    }
}

/// Tries again where too many connections are being opened by the tests beside this one.
func patiently<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
    while true {
        do {
            return try await body()
        } catch let error as DBusError {
            guard error.code == .limitExceeded else { throw error }
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}
