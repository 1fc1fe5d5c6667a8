// SPDX-License-Identifier: MIT

/// An exported object with its definitions, looked up by name.
final class ExportedRecord {
    let object: any ExportedObject
    let interfaces: [ExportedInterface]
    private let methods: [String: [String: ExportedInterface.Method]]

    init(_ object: any ExportedObject) throws(DBusError) {
        self.object = object
        interfaces = object.interfaces
        var methods: [String: [String: ExportedInterface.Method]] = [:]
        for interface in interfaces {
            try interface.check()
            guard methods[interface.name] == nil else {
                throw DBusError(.invalidArgument, "the interface \(interface.name) is there twice")
            }
            methods[interface.name] = Dictionary(
                interface.methods.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        }
        self.methods = methods
    }

    func interface(_ name: String) -> ExportedInterface? {
        interfaces.first { $0.name == name }
    }

    func method(_ member: String, of interface: String) -> ExportedInterface.Method? {
        methods[interface]?[member]
    }

    /// The interface that has a method, for calls that name none.
    func interfaceName(having member: String) -> String? {
        interfaces.first { methods[$0.name]?[member] != nil }?.name
    }

    func value(_ property: ExportedInterface.Property, of interface: String) throws(DBusError) -> DBusValue? {
        guard property.access != .write, let value = object.property(property.name, of: interface) else { return nil }
        // An object may return a variant for a property of another type: it means what is inside.
        let content = property.signature == .variant ? value : value.unwrapped
        guard BodyCheck.isOf(content, property.signature) else {
            throw DBusError(
                name: ErrorName.failed,
                message: "\(interface).\(property.name) is a \(content.signature), not a \(property.signature)")
        }
        return content
    }

    /// All readable properties of an interface as `a{sv}`.
    func properties(of interface: ExportedInterface) throws(DBusError) -> DBusValue {
        var entries: [DBusEntry] = []
        for property in interface.properties {
            if let value = try value(property, of: interface.name) {
                entries.append(DBusEntry(.string(property.name), .variant(value)))
            }
        }
        return .dictionary(key: .string, value: .variant, entries)
    }

    /// All interfaces with their properties as `a{sa{sv}}`.
    func allProperties() throws(DBusError) -> DBusValue {
        var entries: [DBusEntry] = []
        for interface in interfaces {
            entries.append(DBusEntry(.string(interface.name), try properties(of: interface)))
        }
        return .dictionary(key: .string, value: .variantDictionary, entries)
    }
}

extension ConnectionCore {
    func export(_ object: any ExportedObject, at path: ObjectPath) throws(DBusError) {
        if let ended { throw ended }
        try Names.checkNotReserved(path: path)
        guard objects[path] == nil else { throw DBusError(.invalidArgument, "\(path) is exported already") }
        guard objects.count < Limits.exportedObjects else {
            throw DBusError(.limitExceeded, "more than \(Limits.exportedObjects) objects")
        }
        let record = try ExportedRecord(object)
        objects[path] = record
        guard let root = objectManager(above: path) else { return }
        do throws(DBusError) {
            let body: [DBusValue] = [.objectPath(path), try record.allProperties()]
            try transmit(.signal(root, StandardInterface.objectManager, "InterfacesAdded", body, to: nil))
        } catch {
            objects[path] = nil
            throw error
        }
    }

    func unexport(_ path: ObjectPath) {
        guard let record = objects.removeValue(forKey: path), let root = objectManager(above: path) else { return }
        let names = record.interfaces.map(\.name)
        // It can fail only if the bus does not read; who listens will see the object's calls fail.
        if let message = try? RawMessage.signal(
            root, StandardInterface.objectManager, "InterfacesRemoved", [.objectPath(path), .strings(names)], to: nil)
        {
            _ = try? transmit(message)
        }
    }

    func emitSignal(
        _ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue], to destination: String?
    ) throws(DBusError) {
        try transmit(.signal(path, interface, member, body, to: destination))
    }

    /// The nearest object manager above a path.
    private func objectManager(above path: ObjectPath) -> ObjectPath? {
        guard !objectManagers.isEmpty else { return nil }
        var ancestor = path.parent
        while let candidate = ancestor {
            if objectManagers.contains(candidate) { return candidate }
            ancestor = candidate.parent
        }
        return nil
    }

    func managedObjects(beneath root: ObjectPath) throws(DBusError) -> DBusValue {
        var entries: [DBusEntry] = []
        for (path, record) in objects.filter({ $0.key.isBeneath(root) }).sorted(by: { $0.key < $1.key }) {
            entries.append(DBusEntry(.objectPath(path), try record.allProperties()))
        }
        return .dictionary(key: .objectPath, value: "a{sa{sv}}", entries)
    }

    /// Whether there is anything at a path: an object, a manager, or something beneath.
    func exists(_ path: ObjectPath) -> Bool {
        objects[path] != nil || objectManagers.contains(path) || objects.keys.contains { $0.isBeneath(path) }
            || objectManagers.contains { $0.isBeneath(path) }
    }

    /// The next elements of the paths beneath a path.
    func children(of path: ObjectPath) -> [String] {
        let prefix = path == .root ? 1 : path.string.utf8.count + 1
        var names: Set<String> = []
        for known in Array(objects.keys) + Array(objectManagers) where known.isBeneath(path) {
            let rest = known.string.utf8.dropFirst(prefix).prefix { $0 != UInt8(ascii: "/") }
            names.insert(String(Substring(rest)))
        }
        return names.sorted()
    }
}
