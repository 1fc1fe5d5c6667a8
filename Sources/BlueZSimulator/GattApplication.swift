// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// What an application registers with GattManager1, as bluetoothd understands the answer to GetManagedObjects.
struct GattApplication: Sendable {
    struct Characteristic: Sendable {
        let path: ObjectPath
        let uuid: BluetoothUUID
        let flags: CharacteristicFlags
        /// The object has the property: bluetoothd then tries AcquireNotify before StartNotify.
        let hasNotifyAcquired: Bool
        let hasWriteAcquired: Bool
        /// The object has a Handle property of 0, which bluetoothd sets.
        let wantsHandle: Bool
    }

    struct Service: Sendable {
        let path: ObjectPath
        let uuid: BluetoothUUID
        let isPrimary: Bool
        let wantsHandle: Bool
        let characteristics: [Characteristic]
    }

    let owner: String
    let root: ObjectPath
    let services: [Service]

    private static let serviceInterface = "org.bluez.GattService1"
    private static let characteristicInterface = "org.bluez.GattCharacteristic1"
    private static let descriptorInterface = "org.bluez.GattDescriptor1"
    private static let profileInterface = "org.bluez.GattProfile1"

    private static let invalid = ErrorReply.failed("No valid service object found")
    private static let notCreated = ErrorReply.failed("Failed to create entry in database")

    /// Reads the answer to GetManagedObjects in the order in which bluetoothd does (client_ready_cb in
    /// src/gatt-database.c), so that the first mistake gives the same error.
    init(owner: String, root: ObjectPath, objects answer: DBusValue?) throws(ErrorReply) {
        self.owner = owner
        self.root = root
        guard let entries = answer?.asEntries, !entries.isEmpty else { throw .failed("No object received") }
        guard entries.count <= Limits.applicationObjects, let objects = answer?.asManagedObjects else {
            throw Self.invalid
        }
        // The application's order counts: handles follow it.
        let paths = entries.compactMap { $0.key.asObjectPath }
        let servicePaths = paths.filter { objects[$0]?[Self.serviceInterface] != nil }
        let hasProfile = objects.values.contains { $0[Self.profileInterface]?["UUIDs"]?.asStrings?.isEmpty == false }
        var characteristics: [ObjectPath: [(ObjectPath, [String: DBusValue], CharacteristicFlags)]] = [:]
        for path in paths {
            guard let properties = objects[path]?[Self.characteristicInterface] else { continue }
            guard let service = properties["Service"]?.asObjectPath, servicePaths.contains(service),
                let names = properties["Flags"]?.asStrings, let flags = CharacteristicFlags(names)
            else { throw Self.invalid }
            characteristics[service, default: []].append((path, properties, flags))
        }
        for path in paths {
            guard let properties = objects[path]?[Self.descriptorInterface] else { continue }
            guard let parent = properties["Characteristic"]?.asObjectPath,
                objects[parent]?[Self.characteristicInterface] != nil, properties["Flags"]?.asStrings != nil
            else { throw Self.invalid }
        }
        if servicePaths.isEmpty, !hasProfile { throw Self.invalid }
        var services: [Service] = []
        for path in servicePaths {
            guard let properties = objects[path]?[Self.serviceInterface],
                let uuid = Self.uuid(properties), let isPrimary = properties["Primary"]?.asBool,
                let handle = Self.handle(properties)
            else { throw Self.notCreated }
            var members: [Characteristic] = []
            for (path, properties, flags) in characteristics[path] ?? [] {
                guard let uuid = Self.uuid(properties), let handle = Self.handle(properties) else {
                    throw Self.notCreated
                }
                members.append(
                    Characteristic(
                        path: path,
                        uuid: uuid,
                        flags: flags,
                        hasNotifyAcquired: properties["NotifyAcquired"] != nil,
                        hasWriteAcquired: properties["WriteAcquired"] != nil,
                        wantsHandle: handle == .zero
                    ))
            }
            services.append(
                Service(
                    path: path, uuid: uuid, isPrimary: isPrimary, wantsHandle: handle == .zero,
                    characteristics: members))
        }
        self.services = services
    }

    /// GAP and GATT are bluetoothd's own.
    private static func uuid(_ properties: [String: DBusValue]) -> BluetoothUUID? {
        guard let text = properties["UUID"]?.asString, let uuid = BluetoothUUID(text), uuid != 0x1800, uuid != 0x1801
        else { return nil }
        return uuid
    }

    private enum Handle { case absent, zero, chosen }

    private static func handle(_ properties: [String: DBusValue]) -> Handle? {
        guard let value = properties["Handle"] else { return .absent }
        return value.asUInt16.map { $0 == 0 ? .zero : .chosen }
    }
}
