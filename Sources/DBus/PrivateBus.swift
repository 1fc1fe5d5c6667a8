// SPDX-License-Identifier: MIT

/// A bus of one's own: a `dbus-daemon` that listens on a socket in a temporary directory.
package final class PrivateBus: Sendable {
    /// The address to open.
    package let address: String

    /// Starts the daemon and waits until it listens.
    package init() throws(DBusError) {
        throw DBusError(.noBus, "not yet")
    }

    package var busAddress: BusAddress { .address(address) }

    /// Ends the daemon.
    package func stop() {}

    /// Starts the daemon again at the same address.
    package func restart() throws(DBusError) {}
}
