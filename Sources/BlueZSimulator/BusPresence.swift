// SPDX-License-Identifier: MIT

internal import DBus

/// The daemon's side of the bus for one life of it: from taking the name to giving it up.
@BlueZSimulatorActor
final class BusPresence {
    let connection: DBusConnection
    /// Called with the unique name of each client that leaves the bus.
    var onClientGone: (@BlueZSimulatorActor (String) -> Void)?
    private var isOpen = true
    private var ownerMatch: MatchToken?
    /// Calls that bluetoothd loses sight of. A call that is let go of would be answered.
    private var unanswered: [MethodCall] = []

    init(connection: DBusConnection) {
        self.connection = connection
    }

    static let name = "org.bluez"

    /// Exports the roots and starts to watch clients; the name comes last, so that whoever sees it finds everything.
    func open() async throws(DBusError) {
        try await connection.exportObjectManager(at: .root)
        let rule = MatchRule(
            sender: "org.freedesktop.DBus", interface: "org.freedesktop.DBus", member: "NameOwnerChanged")
        ownerMatch = try await connection.addMatch(rule) { [weak self] message in
            guard message.body.count == 3, let name = message.body[0].asString, name.hasPrefix(":"),
                message.body[2].asString == ""
            else { return }
            BlueZSimulatorActor.assumeIsolated { self?.clientGone(name) }
        }
    }

    func takeName() async throws(DBusError) {
        try await connection.requestName(Self.name)
    }

    func close() {
        isOpen = false
        ownerMatch?.cancel()
        connection.assumeIsolated { $0.close() }
    }

    /// Never answers a call, as long as this daemon lives. The connection bounds how many of those there can be.
    func leaveUnanswered(_ call: MethodCall) { unanswered.append(call) }

    private func clientGone(_ name: String) {
        unanswered.removeAll { $0.sender == name }
        if isOpen { onClientGone?(name) }
    }

    /// - Parameter owner: Kept for as long as the object is exported.
    func export(_ parts: [any BusInterface], at path: ObjectPath, owner: any AnyObject & Sendable) {
        guard isOpen else { return }
        // Paths and declarations are ours, so the only refusal left is a connection that is lost.
        let object = BusObject(parts, owner: owner)
        connection.assumeIsolated { try? $0.export(object, at: path) }
    }

    func unexport(_ path: ObjectPath) {
        guard isOpen else { return }
        connection.assumeIsolated { $0.unexport(path) }
    }

    func emit(_ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue]) {
        guard isOpen else { return }
        connection.assumeIsolated { try? $0.emitSignal(path, interface, member, body) }
    }

    /// Emits PropertiesChanged for properties of an interface, each with its present value, or as invalidated if it
    /// has none any more.
    func changed(_ part: any BusInterface, at path: ObjectPath, _ names: [String]) {
        guard isOpen, !names.isEmpty else { return }
        var changed: [(String, DBusValue)] = []
        var invalidated: [String] = []
        for name in names {
            if let value = part.property(name) { changed.append((name, value)) } else { invalidated.append(name) }
        }
        let interface = part.declaration.name
        let pairs = changed
        let gone = invalidated
        connection.assumeIsolated {
            try? $0.emitPropertiesChanged(path, interface, changed: pairs, invalidated: gone)
        }
    }

    /// Calls an application. The completion runs here; not at all once the daemon has gone.
    func call(
        _ destination: String,
        _ path: ObjectPath,
        _ interface: String,
        _ member: String,
        _ body: [DBusValue] = [],
        timeout: Duration = Limits.registrationTimeout,
        completion: @escaping @BlueZSimulatorActor (Result<[DBusValue], DBusError>) -> Void = { _ in }
    ) {
        guard isOpen else { return }
        let call = DBusCall(destination, path, interface, member, body, timeout: timeout)
        connection.send(call: call) { [weak self] result in
            BlueZSimulatorActor.assumeIsolated {
                if self?.isOpen == true { completion(result) }
            }
        }
    }

    /// Follows an application's signals; the token ends it.
    func follow(_ rule: MatchRule, _ handler: @escaping @BlueZSimulatorActor (DBusMessage) -> Void) -> MatchToken {
        connection.assumeIsolated { connection in
            connection.addMatch(
                rule,
                { [weak self] message in
                    BlueZSimulatorActor.assumeIsolated {
                        if self?.isOpen == true { handler(message) }
                    }
                },
                completion: { _ in }
            )
        }
    }
}
