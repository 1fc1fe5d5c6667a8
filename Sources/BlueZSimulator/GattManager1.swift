// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// org.bluez.GattManager1: applications register their services here.
///
/// Source: src/gatt-database.c of BlueZ, doc/org.bluez.GattManager.rst.
@BlueZSimulatorActor
final class GattManager1: BusInterface {
    private struct Key: Hashable {
        let owner: String
        let root: ObjectPath
    }

    private let adapter: Adapter
    /// Applications, those that are still being asked for their objects too.
    private var registrations: [Key: UInt64] = [:]
    private var nextID: UInt64 = 1
    nonisolated let declaration = ExportedInterface(
        "org.bluez.GattManager1",
        methods: [.init("RegisterApplication", "oa{sv}"), .init("UnregisterApplication", "o")]
    )

    init(adapter: Adapter) {
        self.adapter = adapter
    }

    func property(_ name: String) -> DBusValue? { nil }

    func handle(_ call: MethodCall) {
        guard let root = call.arguments.first?.asObjectPath else { return call.fail(.invalidArguments) }
        switch call.member {
        case "RegisterApplication": register(call, Key(owner: call.sender, root: root))
        case "UnregisterApplication": unregister(call, Key(owner: call.sender, root: root))
        default: call.fail(.notSupported)
        }
    }

    private func register(_ call: MethodCall, _ key: Key) {
        guard registrations[key] == nil else { return call.fail(.alreadyExists) }
        guard registrations.count < Limits.applications else {
            return call.fail(.failed("Failed to register application"))
        }
        let id = nextID
        nextID += 1
        registrations[key] = id
        // The application is asked back before its call is answered: it has to dispatch meanwhile.
        adapter.presence.call(
            key.owner, key.root, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects"
        ) { [weak self] result in
            guard let self else { return call.fail(.failed("Failed to register application")) }
            // Unregistered meanwhile: nobody answers (app_free in src/gatt-database.c).
            guard self.registrations[key] == id else { return self.adapter.presence.leaveUnanswered(call) }
            do throws(ErrorReply) {
                let objects = try? result.get().first
                let application = try GattApplication(owner: key.owner, root: key.root, objects: objects)
                self.serve(call, key, id, application)
            } catch {
                self.registrations[key] = nil
                call.fail(error)
            }
        }
    }

    private func serve(_ call: MethodCall, _ key: Key, _ id: UInt64, _ application: GattApplication) {
        let adapter = adapter
        Task { [weak self] in
            do throws(BluetoothError) {
                try await adapter.server.add(application, id)
                guard self?.registrations[key] == id else { return adapter.server.remove(id) }
                adapter.adapter1.signal(["UUIDs"])
                call.reply()
            } catch {
                self?.registrations[key] = nil
                call.fail(.failed("Failed to create entry in database"))
            }
        }
    }

    private func unregister(_ call: MethodCall, _ key: Key) {
        guard let id = registrations.removeValue(forKey: key) else { return call.fail(.doesNotExist) }
        adapter.server.remove(id)
        adapter.adapter1.signal(["UUIDs"])
        call.reply()
    }

    func clientGone(_ client: String) {
        let gone = registrations.filter { $0.key.owner == client }
        for (key, id) in gone {
            registrations[key] = nil
            adapter.server.remove(id)
        }
        if !gone.isEmpty { adapter.adapter1.signal(["UUIDs"]) }
    }
}
