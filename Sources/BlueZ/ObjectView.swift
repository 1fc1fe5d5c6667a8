// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// The objects of bluetoothd that we follow, as its messages tell them (rules 18, 25).
///
/// Pure: messages go in, changes come out. Bounded: the air can make bluetoothd create any number of devices.
struct ObjectView: Sendable {
    /// What a message meant.
    enum Change: Sendable, Hashable {
        case adapter
        /// A device that was not in the view; what it came with.
        case deviceAdded(ObjectPath, Device1.Change)
        case deviceChanged(ObjectPath, Device1.Change)
        /// `connected`: it was, as far as the view knew.
        case deviceRemoved(ObjectPath, connected: Bool)
        /// A characteristic of this device appeared.
        case characteristicAdded(device: ObjectPath, ObjectPath)
        case characteristicRemoved(device: ObjectPath, ObjectPath)
        /// A characteristic's value: a notification, or the echo of a read.
        case value(device: ObjectPath, ObjectPath, [UInt8])
    }

    private(set) var adapters: [ObjectPath: Adapter1] = [:]
    private(set) var devices: [ObjectPath: Device1] = [:]
    private(set) var services: [ObjectPath: GattService1] = [:]
    private(set) var characteristics: [ObjectPath: GattCharacteristic1] = [:]
    /// When each device came, to forget the oldest first.
    private var arrivals: [ObjectPath: UInt64] = [:]
    private var arrival: UInt64 = 0

    /// Replaces everything by an answer to `GetManagedObjects`.
    mutating func load(_ objects: [ObjectPath: [String: [String: DBusValue]]]) {
        self = ObjectView()
        for (path, interfaces) in objects.sorted(by: { $0.key < $1.key }) { _ = added(path, interfaces) }
    }

    mutating func added(_ path: ObjectPath, _ interfaces: [String: [String: DBusValue]]) -> [Change] {
        var changes: [Change] = []
        if let properties = interfaces[BlueZName.adapter], adapters[path] != nil || adapters.count < Limits.adapters {
            adapters[path, default: Adapter1(path: path)].apply(properties)
            changes.append(.adapter)
        }
        // These come with the adapter or after it, each in a message of its own.
        if interfaces[BlueZName.gattRegistry] != nil, adapters[path] != nil {
            adapters[path]?.servesGATT = true
            changes = [.adapter]
        }
        if interfaces[BlueZName.advertisingRegistry] != nil, adapters[path] != nil {
            adapters[path]?.advertises = true
            changes = [.adapter]
        }
        if let properties = interfaces[BlueZName.device] { changes += deviceAdded(path, properties) }
        if let properties = interfaces[BlueZName.gattService], path.parent.map({ devices[$0] != nil }) == true,
            services[path] != nil || services.count < Limits.attributes
        {
            services[path, default: GattService1()].apply(properties)
        }
        if let properties = interfaces[BlueZName.gattCharacteristic], let device = Self.device(of: path),
            devices[device] != nil, characteristics[path] != nil || characteristics.count < Limits.attributes
        {
            characteristics[path, default: GattCharacteristic1()].apply(properties)
            changes.append(.characteristicAdded(device: device, path))
        }
        return changes
    }

    mutating func removed(_ path: ObjectPath, _ interfaces: [String]) -> [Change] {
        var changes: [Change] = []
        for interface in interfaces {
            switch interface {
            case BlueZName.adapter:
                guard adapters.removeValue(forKey: path) != nil else { continue }
                // Its devices go in messages of their own, but not always before it.
                for device in devices.keys.filter({ $0.isBeneath(path) }).sorted() {
                    changes += deviceRemoved(device)
                }
                changes.append(.adapter)
            case BlueZName.gattRegistry:
                guard adapters[path] != nil else { continue }
                adapters[path]?.servesGATT = false
                changes.append(.adapter)
            case BlueZName.advertisingRegistry:
                guard adapters[path] != nil else { continue }
                adapters[path]?.advertises = false
                changes.append(.adapter)
            case BlueZName.device: changes += deviceRemoved(path)
            case BlueZName.gattService: services[path] = nil
            case BlueZName.gattCharacteristic:
                guard characteristics.removeValue(forKey: path) != nil, let device = Self.device(of: path)
                else { continue }
                changes.append(.characteristicRemoved(device: device, path))
            default: break
            }
        }
        return changes
    }

    mutating func changed(
        _ path: ObjectPath,
        _ interface: String,
        _ properties: [String: DBusValue],
        invalidated: [String]
    ) -> [Change] {
        switch interface {
        case BlueZName.adapter:
            guard let before = adapters[path] else { return [] }
            adapters[path]?.apply(properties, invalidated: invalidated)
            return adapters[path] == before ? [] : [.adapter]
        case BlueZName.device:
            guard let change = devices[path]?.apply(properties, invalidated: invalidated), !change.isEmpty
            else { return [] }
            return [.deviceChanged(path, change)]
        case BlueZName.gattCharacteristic:
            guard let device = Self.device(of: path), characteristics[path] != nil else { return [] }
            characteristics[path]?.apply(properties)
            guard let value = properties["Value"]?.asBytes else { return [] }
            return [.value(device: device, path, value)]
        default:
            return []
        }
    }

    /// The services of a device in the order of their handles: BlueZ's paths hold them as four hexadecimal digits.
    func remoteServices(of device: ObjectPath) -> [RemoteService] {
        services.keys.filter { $0.parent == device }.sorted().compactMap { path in
            guard let service = services[path], let uuid = service.uuid else { return nil }
            let members = characteristics.keys.filter { $0.parent == path }.sorted().compactMap { path in
                characteristics[path].flatMap { member in
                    member.uuid.map {
                        RemoteCharacteristic(id: path.string, uuid: $0, properties: member.properties)
                    }
                }
            }
            return RemoteService(
                id: path.string, uuid: uuid, isPrimary: service.isPrimary, characteristics: members)
        }
    }

    func attMTU(of device: ObjectPath) -> Int? {
        characteristics.lazy.filter { $0.key.isBeneath(device) }.compactMap(\.value.mtu).max()
    }

    /// `/org/bluez/hci0/dev_X/serviceN/charM`: two levels up.
    static func device(of characteristic: ObjectPath) -> ObjectPath? { characteristic.parent?.parent }

    private mutating func deviceAdded(_ path: ObjectPath, _ properties: [String: DBusValue]) -> [Change] {
        var changes: [Change] = []
        let known = devices[path] != nil
        if !known {
            if devices.count >= Limits.devices { changes += forgetOldest() }
            guard devices.count < Limits.devices else { return changes }
            arrival += 1
            arrivals[path] = arrival
        }
        let change = devices[path, default: Device1()].apply(properties)
        changes.append(known ? .deviceChanged(path, change) : .deviceAdded(path, change))
        return changes
    }

    private mutating func forgetOldest() -> [Change] {
        let oldest = arrivals.filter { devices[$0.key]?.connected == false }.min { $0.value < $1.value }
        return oldest.map { deviceRemoved($0.key) } ?? []
    }

    private mutating func deviceRemoved(_ path: ObjectPath) -> [Change] {
        guard let device = devices.removeValue(forKey: path) else { return [] }
        arrivals[path] = nil
        for service in services.keys.filter({ $0.isBeneath(path) }) { services[service] = nil }
        for characteristic in characteristics.keys.filter({ $0.isBeneath(path) }) {
            characteristics[characteristic] = nil
        }
        return [.deviceRemoved(path, connected: device.connected)]
    }
}
