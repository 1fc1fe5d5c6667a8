// SPDX-License-Identifier: MIT

internal import DBus

/// One interface of an object of org.bluez.
@BlueZSimulatorActor
protocol BusInterface: AnyObject, Sendable {
    nonisolated var declaration: ExportedInterface { get }

    /// Answers a call, now or later.
    func handle(_ call: MethodCall)

    /// The value of a property; nil if the object does not have it at present.
    func property(_ name: String) -> DBusValue?

    /// Sets a property that is writable.
    func setProperty(_ name: String, to value: DBusValue) -> ErrorReply?
}

extension BusInterface {
    func setProperty(_ name: String, to value: DBusValue) -> ErrorReply? {
        ErrorReply(fullName: "org.freedesktop.DBus.Error.PropertyReadOnly", "Property '\(name)' is not writable")
    }
}

/// An object of org.bluez: the interfaces at one path.
final class BusObject: ExportedObject {
    let interfaces: [ExportedInterface]
    private let parts: [String: any BusInterface]
    /// What the parts refer to without owning it.
    private let owner: any AnyObject & Sendable

    init(_ parts: [any BusInterface], owner: any AnyObject & Sendable) {
        self.owner = owner
        interfaces = parts.map(\.declaration)
        self.parts = Dictionary(parts.map { ($0.declaration.name, $0) }) { first, _ in first }
    }

    func handle(_ call: MethodCall) {
        BlueZSimulatorActor.assumeIsolated { parts[call.interface]?.handle(call) }
    }

    func property(_ name: String, of interface: String) -> DBusValue? {
        BlueZSimulatorActor.assumeIsolated { parts[interface]?.property(name) }
    }

    func setProperty(_ name: String, of interface: String, to value: DBusValue) -> DBusError? {
        BlueZSimulatorActor.assumeIsolated {
            parts[interface]?.setProperty(name, to: value).map { DBusError(name: $0.name, message: $0.message) }
        }
    }
}

extension MethodCall {
    func fail(_ error: ErrorReply) {
        fail(name: error.name, message: error.message)
    }
}
