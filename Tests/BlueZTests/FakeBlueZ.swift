// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

/// The suites that need a bus, one test at a time: each starts a bus daemon, and machines with two cores are slow then.
@Suite(.serialized) enum OnABus {}

/// A bluetoothd of strings: objects that a test puts there, and answers that it scripts. It owns `org.bluez` on a bus of
/// its own and writes down every call.
final class FakeBlueZ: Sendable {
    typealias Answer = @Sendable (MethodCall) async -> Void

    static let adapter: ObjectPath = "/org/bluez/hci0"
    let bus: PrivateBus
    let state = FakeState()
    private let loop = EventLoop(name: "fake")

    init(start: Bool = true) async throws {
        bus = try await PrivateBus()
        if start { try await self.start() }
    }

    deinit { bus.stop() }

    /// bluetoothd starts: an adapter, no devices.
    func start(adapter properties: [String: DBusValue] = [:]) async throws {
        let connection = try await open()
        try await connection.exportObjectManager(at: .root)
        try await addAdapter(properties)
        try await connection.requestName("org.bluez")
    }

    /// It is there, and answers no `GetManagedObjects` before it has `recovered`.
    func startUnwell() async throws { try await open().requestName("org.bluez") }

    func recovered() async throws {
        try await state.connection?.exportObjectManager(at: .root)
        try await addAdapter()
    }

    private func open() async throws -> DBusConnection {
        let connection = try await DBusConnection.open(bus.busAddress, on: loop)
        state.begin(connection)
        return connection
    }

    func addAdapter(_ properties: [String: DBusValue] = [:]) async throws {
        var adapter: [String: DBusValue] = [
            "Address": .string("00:11:22:33:44:55"), "Powered": .bool(true),
            "Roles": .strings(["central", "peripheral", "central-peripheral"]),
        ]
        adapter.merge(properties) { $1 }
        try await export(
            Self.adapter,
            ["org.bluez.Adapter1": adapter, "org.bluez.GattManager1": [:], "org.bluez.LEAdvertisingManager1": [:]])
    }

    /// As after `kill -9`.
    func crash() async {
        guard let connection = state.end() else { return }
        await connection.close()
    }

    // MARK: Objects

    func export(_ path: ObjectPath, _ interfaces: [String: [String: DBusValue]]) async throws {
        let object = FakeObject(interfaces) { [state] in state.received($0) }
        state.put(path, object)
        try await state.connection?.export(object, at: path)
    }

    func remove(_ path: ObjectPath) async {
        state.put(path, nil)
        await state.connection?.unexport(path)
    }

    func set(_ path: ObjectPath, _ interface: String, _ values: [String: DBusValue], invalidated: [String] = [])
        async
        throws
    {
        state.object(path)?.set(interface, values, invalidated)
        try await state.connection?.emitPropertiesChanged(
            path, interface, changed: values.sorted { $0.key < $1.key }.map { ($0.key, $0.value) },
            invalidated: invalidated)
    }

    /// As `set`, and nobody is told.
    func setSilently(_ path: ObjectPath, _ interface: String, _ values: [String: DBusValue]) {
        state.object(path)?.set(interface, values, [])
    }

    @discardableResult
    func addDevice(_ number: Int, _ properties: [String: DBusValue] = [:]) async throws -> ObjectPath {
        let path = Self.device(number)
        var device: [String: DBusValue] = [
            "Address": .string("C0:00:00:00:00:0\(number)"), "AddressType": .string("random"),
            "Connected": .bool(false), "ServicesResolved": .bool(false), "UUIDs": .strings([]),
        ]
        device.merge(properties) { $1 }
        try await export(path, ["org.bluez.Device1": device])
        return path
    }

    static func device(_ number: Int) -> ObjectPath {
        ObjectPath(validating: "/org/bluez/hci0/dev_C0_00_00_00_00_0\(number)") ?? .root
    }

    /// A device's service with one characteristic.
    @discardableResult
    func addService(
        _ device: ObjectPath, _ service: Int = 1, uuid: BluetoothUUID, characteristic: BluetoothUUID, flags: [String]
    ) async throws -> ObjectPath {
        let path = ObjectPath(validating: "\(device)/service000\(service)") ?? .root
        let member = ObjectPath(validating: "\(path)/char0002") ?? .root
        try await export(
            path,
            [
                "org.bluez.GattService1": [
                    "UUID": .string(uuid.longDescription), "Primary": .bool(true), "Device": .objectPath(device),
                ]
            ])
        try await export(
            member,
            [
                "org.bluez.GattCharacteristic1": [
                    "UUID": .string(characteristic.longDescription), "Service": .objectPath(path),
                    "Flags": .strings(flags), "MTU": .uint16(185),
                ]
            ])
        return member
    }

    // MARK: Calls

    /// Scripts a method; without a script it answers success.
    func on(_ member: String, _ answer: @escaping Answer) { state.script(member, answer) }

    func fail(_ member: String, _ name: String, _ message: String = "") {
        on(member) { $0.fail(name: name, message: message) }
    }

    func succeed(_ member: String) { state.script(member, nil) }

    var calls: [String] { state.calls.map(\.member) }

    /// Waits until a method has been called so many times in all; gives the last of those calls. Throws where the test's time
    /// is up.
    @discardableResult
    func called(_ member: String, times: Int = 1) async throws -> MethodCall {
        try await state.called(member, times: times)
    }

    func signal(_ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue]) async throws {
        try await state.connection?.emitSignal(path, interface, member, body)
    }

    /// Calls an object of the radio, as bluetoothd does.
    func call(
        _ client: String, _ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue] = []
    ) async throws(DBusError) -> [DBusValue] {
        guard let connection = state.connection else { throw DBusError(.disconnected, "stopped") }
        return try await connection.call(client, path, interface, member, body)
    }

    /// The changes that an object of the radio tells.
    func changes(from client: String, of interface: String) async throws -> AsyncStream<DBusMessage> {
        guard let connection = state.connection else { throw DBusError(.disconnected, "stopped") }
        return try await connection.signals(.propertiesChanged(sender: client, interface: interface))
    }

    /// Makes the bus refuse these methods of its own, and no others.
    func refuse(_ members: [String]) async throws {
        try bus.refuse(members)
        _ = try await state.connection?.call(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ReloadConfig")
    }

    func radio(adapter: String? = nil) -> BlueZRadio {
        BlueZRadio(BlueZConfiguration(bus: bus.address, adapter: adapter))
    }
}

/// `@unchecked Sendable`: everything that varies is guarded by `lock`.
final class FakeState: @unchecked Sendable {
    private let lock = Lock()
    private var open: DBusConnection?
    private var objects: [ObjectPath: FakeObject] = [:]
    private var scripts: [String: FakeBlueZ.Answer] = [:]
    private var log: [MethodCall] = []
    private var waiting: [(member: String, times: Int, CheckedContinuation<MethodCall, any Error>)] = []

    var connection: DBusConnection? { lock.withLock { open } }
    var calls: [MethodCall] { lock.withLock { log } }

    func begin(_ connection: DBusConnection) { lock.withLock { open = connection } }

    func end() -> DBusConnection? {
        lock.withLock {
            defer {
                open = nil
                objects = [:]
            }
            return open
        }
    }

    func put(_ path: ObjectPath, _ object: FakeObject?) { lock.withLock { objects[path] = object } }
    func object(_ path: ObjectPath) -> FakeObject? { lock.withLock { objects[path] } }
    func script(_ member: String, _ answer: FakeBlueZ.Answer?) { lock.withLock { scripts[member] = answer } }

    func received(_ call: MethodCall) {
        let (answer, woken) = lock.withLock {
            () -> (FakeBlueZ.Answer?, [CheckedContinuation<MethodCall, any Error>]) in
            log.append(call)
            let count = log.count { $0.member == call.member }
            var woken: [CheckedContinuation<MethodCall, any Error>] = []
            waiting.removeAll { entry in
                guard entry.member == call.member, entry.times == count else { return false }
                woken.append(entry.2)
                return true
            }
            return (scripts[call.member], woken)
        }
        if let answer { Task { await answer(call) } } else { call.reply() }
        for continuation in woken { continuation.resume(returning: call) }
    }

    func called(_ member: String, times: Int) async throws -> MethodCall {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let found = lock.withLock { () -> MethodCall? in
                    let matching = log.filter { $0.member == member }
                    if matching.count >= times { return matching[times - 1] }
                    waiting.append((member, times, continuation))
                    return nil
                }
                if let found { continuation.resume(returning: found) } else if Task.isCancelled { giveUp() }
            }
        } onCancel: {
            giveUp()
        }
    }

    private func giveUp() {
        let never = lock.withLock {
            defer { waiting = [] }
            return waiting
        }
        for entry in never { entry.2.resume(throwing: NeverCalled(member: entry.member, times: entry.times)) }
    }
}

struct NeverCalled: Error {
    let member: String
    let times: Int
}

/// `@unchecked Sendable`: `values` is guarded by `lock`, everything else is constant.
final class FakeObject: ExportedObject, @unchecked Sendable {
    let interfaces: [ExportedInterface]
    private let lock = Lock()
    private var values: [String: [String: DBusValue]]
    private let onCall: @Sendable (MethodCall) -> Void

    private static let methods: [String: [ExportedInterface.Method]] = [
        "org.bluez.Adapter1": [
            .init("SetDiscoveryFilter", "a{sv}"), .init("GetDiscoveryFilters", returns: "as"), .init("StartDiscovery"),
            .init("StopDiscovery"),
        ],
        "org.bluez.Device1": [.init("Connect"), .init("Disconnect")],
        "org.bluez.GattCharacteristic1": [
            .init("ReadValue", "a{sv}", returns: "ay"), .init("WriteValue", "aya{sv}"), .init("StartNotify"),
            .init("StopNotify"),
        ],
        "org.bluez.GattManager1": [
            .init("RegisterApplication", "oa{sv}"), .init("UnregisterApplication", "o"),
        ],
        "org.bluez.LEAdvertisingManager1": [
            .init("RegisterAdvertisement", "oa{sv}"), .init("UnregisterAdvertisement", "o"),
        ],
    ]
    private static let optional: [String: [ExportedInterface.Property]] = [
        "org.bluez.Device1": [
            .init("RSSI", "n"), .init("Name", "s"), .init("TxPower", "n"), .init("ManufacturerData", "a{qv}"),
            .init("ServiceData", "a{sv}"),
        ],
        "org.bluez.GattCharacteristic1": [.init("Value", "ay")],
        "org.bluez.Adapter1": [.init("PowerState", "s")],
    ]

    init(_ values: [String: [String: DBusValue]], onCall: @escaping @Sendable (MethodCall) -> Void) {
        self.values = values
        self.onCall = onCall
        interfaces = values.map { name, properties in
            let more = (Self.optional[name] ?? []).filter { properties[$0.name] == nil }
            return ExportedInterface(
                name, methods: Self.methods[name] ?? [],
                properties: properties.map { .init($0.key, $0.value.signature) } + more)
        }
    }

    func handle(_ call: MethodCall) { onCall(call) }

    func property(_ name: String, of interface: String) -> DBusValue? { lock.withLock { values[interface]?[name] } }

    func set(_ interface: String, _ changed: [String: DBusValue], _ invalidated: [String]) {
        lock.withLock {
            values[interface, default: [:]].merge(changed) { $1 }
            for name in invalidated { values[interface]?[name] = nil }
        }
    }
}

struct Unexpected: Error {}

/// Calls that are not answered, or later.
///
/// `@unchecked Sendable`: `calls` is guarded by `lock`.
final class Held: @unchecked Sendable {
    private let lock = Lock()
    private var calls: [MethodCall] = []
    private var waiter: CheckedContinuation<[MethodCall], Never>?

    func keep(_ call: MethodCall) {
        let waiter = lock.withLock {
            if self.waiter == nil { calls.append(call) }
            defer { self.waiter = nil }
            return self.waiter
        }
        waiter?.resume(returning: [call])
    }

    /// One or more: a call is known to have been made a moment before it is kept.
    func take() async -> [MethodCall] {
        await withCheckedContinuation { continuation in
            let kept = lock.withLock {
                if calls.isEmpty { waiter = continuation }
                defer { calls = [] }
                return calls
            }
            if !kept.isEmpty { continuation.resume(returning: kept) }
        }
    }
}
