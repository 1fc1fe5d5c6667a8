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
    /// The services and characteristics of each device, so that nothing has to look through those of all.
    private var attributes: [ObjectPath: Set<ObjectPath>] = [:]
    private var arrivals = DeviceArrivals()

    /// What is there now was there before anybody of ours listened.
    mutating func rememberDevices() {
        for path in devices.keys { devices[path]?.wasThere() }
    }

    /// Replaces everything by an answer to `GetManagedObjects`.
    mutating func load(_ objects: [ObjectPath: [String: [String: DBusValue]]]) {
        self = ObjectView()
        for (path, interfaces) in objects.sorted(by: { $0.key < $1.key }) { _ = added(path, interfaces) }
        rememberDevices()
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
        if let properties = interfaces[BlueZName.gattService], let device = path.parent, devices[device] != nil,
            services[path] != nil || (services.count < Limits.attributes && hasRoom(device))
        {
            attributes[device, default: []].insert(path)
            services[path, default: GattService1()].apply(properties)
        }
        if let properties = interfaces[BlueZName.gattCharacteristic], let device = Self.device(of: path),
            devices[device] != nil,
            characteristics[path] != nil || (characteristics.count < Limits.attributes && hasRoom(device))
        {
            attributes[device, default: []].insert(path)
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
            case BlueZName.gattService:
                guard services.removeValue(forKey: path) != nil, let device = path.parent else { continue }
                attributes[device]?.remove(path)
            case BlueZName.gattCharacteristic:
                guard characteristics.removeValue(forKey: path) != nil, let device = Self.device(of: path)
                else { continue }
                attributes[device]?.remove(path)
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
            // One that had been forgotten to make room, and is here again: else nobody would learn when it leaves.
            if devices[path] == nil, properties["Connected"]?.asBool == true { return deviceAdded(path, properties) }
            guard let change = devices[path]?.apply(properties, invalidated: invalidated), !change.isEmpty
            else { return [] }
            return [.deviceChanged(path, change)]
        case BlueZName.gattCharacteristic:
            guard let device = Self.device(of: path), characteristics[path] != nil else { return [] }
            characteristics[path]?.apply(properties)
            // A longer one cannot have come through the air.
            guard let value = properties["Value"]?.asBytes, value.count <= Limits.valueBytes else { return [] }
            return [.value(device: device, path, value)]
        default:
            return []
        }
    }

    /// Whether the adapter is connected to any device.
    func hasConnection(to adapter: ObjectPath) -> Bool {
        devices.contains { $0.value.connected && $0.key.isBeneath(adapter) }
    }

    /// The services of a device in the order of their handles: BlueZ's paths hold them as four hexadecimal digits.
    func remoteServices(of device: ObjectPath) -> [RemoteService] {
        let paths = (attributes[device] ?? []).sorted()
        let members = Dictionary(grouping: paths.filter { characteristics[$0] != nil }) { $0.parent }
        return paths.compactMap { path in
            guard let service = services[path], let uuid = service.uuid else { return nil }
            let members = (members[path] ?? []).compactMap { path in
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
        (attributes[device] ?? []).lazy.compactMap { characteristics[$0]?.mtu }.max()
    }

    func anyCharacteristic(of device: ObjectPath) -> ObjectPath? {
        attributes[device]?.first { characteristics[$0] != nil }
    }

    /// `/org/bluez/hci0/dev_X/serviceN/charM`: two levels up.
    static func device(of characteristic: ObjectPath) -> ObjectPath? { characteristic.parent?.parent }

    private mutating func deviceAdded(_ path: ObjectPath, _ properties: [String: DBusValue]) -> [Change] {
        var changes: [Change] = []
        let known = devices[path] != nil
        if !known {
            if devices.count >= Limits.devices { changes += forgetOldest() }
            guard devices.count < Limits.devices else { return changes }
            arrivals.came(path)
        }
        let change = devices[path, default: Device1()].apply(properties)
        changes.append(known ? .deviceChanged(path, change) : .deviceAdded(path, change))
        return changes
    }

    /// One device cannot take the room of all the others.
    private func hasRoom(_ device: ObjectPath) -> Bool {
        (attributes[device]?.count ?? 0) < Limits.attributesOfADevice
    }

    private mutating func forgetOldest() -> [Change] {
        let oldest = arrivals.oldest { devices[$0]?.connected == false }
        return oldest.map { deviceRemoved($0) } ?? []
    }

    private mutating func deviceRemoved(_ path: ObjectPath) -> [Change] {
        guard let device = devices.removeValue(forKey: path) else { return [] }
        arrivals.left(path)
        for attribute in attributes.removeValue(forKey: path) ?? [] {
            services[attribute] = nil
            characteristics[attribute] = nil
        }
        return [.deviceRemoved(path, connected: device.connected)]
    }
}

/// The devices in the order in which they came. To find the oldest takes no look at all the others: whoever is in radio
/// range decides how often it has to be found.
struct DeviceArrivals: Sendable {
    private var queue: [(path: ObjectPath, number: UInt64)] = []
    private var head = 0
    /// A device that has left leaves its place in the queue, under a number that is no longer its own.
    private var numbers: [ObjectPath: UInt64] = [:]
    private var last: UInt64 = 0

    mutating func came(_ path: ObjectPath) {
        last += 1
        numbers[path] = last
        queue.append((path, last))
        guard queue.count > 2 * numbers.count + 64 else { return }
        queue = queue[head...].filter { numbers[$0.path] == $0.number }
        head = 0
    }

    mutating func left(_ path: ObjectPath) { numbers[path] = nil }

    /// The one that came first among those that may go. Those before it that may not count as new from now on.
    mutating func oldest(where mayGo: (ObjectPath) -> Bool) -> ObjectPath? {
        for _ in numbers {
            while head < queue.count, numbers[queue[head].path] != queue[head].number { head += 1 }
            guard head < queue.count else { return nil }
            let path = queue[head].path
            if mayGo(path) { return path }
            head += 1
            came(path)
        }
        return nil
    }
}
