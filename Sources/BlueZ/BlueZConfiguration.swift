// SPDX-License-Identifier: MIT

/// Which Bluetooth service, and which of its adapters, a `BlueZRadio` uses.
public struct BlueZConfiguration: Sendable, Hashable {
    /// The D-Bus address of the bus that `org.bluez` is on, such as `unix:path=/run/dbus/system_bus_socket`, or
    /// `session`; `nil` or `system`: what `DBUS_SYSTEM_BUS_ADDRESS` says, else the system bus.
    public var bus: String?
    /// The adapter, by name (`hci0`) or by address (`AA:BB:CC:DD:EE:FF`); `nil`: the first powered one that does
    /// Bluetooth LE.
    public var adapter: String?

    public init(bus: String? = nil, adapter: String? = nil) {
        self.bus = bus
        self.adapter = adapter
    }
}
