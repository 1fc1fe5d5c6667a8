// SPDX-License-Identifier: MIT

import Glibc

/// Where the bus is.
public enum BusAddress: Sendable, Hashable, CustomStringConvertible {
    /// The system bus: `DBUS_SYSTEM_BUS_ADDRESS` if set, else the well-known socket.
    case system
    /// The session bus: `DBUS_SESSION_BUS_ADDRESS` if set, else `$XDG_RUNTIME_DIR/bus`. Never launches one.
    case session
    /// A D-Bus address, such as `unix:path=/run/dbus/system_bus_socket`.
    case address(String)

    /// From a command line: nil or `system`, `session`, or an address.
    public init(argument: String?) {
        switch argument {
        case nil, "system": self = .system
        case "session": self = .session
        case .some(let text): self = .address(text)
        }
    }

    public var description: String {
        switch self {
        case .system: "the system bus"
        case .session: "the session bus"
        case .address(let text): text
        }
    }

    /// The address to hand to libdbus.
    ///
    /// - Throws: ``DBusError/Code/noBus`` if the environment names no session bus,
    ///   ``DBusError/Code/invalidArgument`` for an empty or impossible address.
    package func resolved() throws(DBusError) -> String {
        let text: String
        switch self {
        case .system:
            text = BusAddress.environment("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/var/run/dbus/system_bus_socket"
        case .session:
            if let address = BusAddress.environment("DBUS_SESSION_BUS_ADDRESS") {
                text = address
            } else if let directory = BusAddress.environment("XDG_RUNTIME_DIR") {
                text = "unix:path=\(directory)/bus"
            } else {
                throw DBusError(
                    .noBus, "no session bus: neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set",
                    advice: "name the bus by its address")
            }
        case .address(let address):
            text = address
        }
        guard !text.isEmpty, text.utf8.count <= 4096, !text.utf8.contains(0), text.contains(":") else {
            throw DBusError(.invalidArgument, "not a D-Bus address: \(text)", advice: "for example unix:path=/run/bus")
        }
        return text
    }

    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}
