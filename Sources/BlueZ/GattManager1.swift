// SPDX-License-Identifier: MIT

internal import DBus

/// The calls of `org.bluez.GattManager1` that we make.
enum GATTRegistry {
    static func register(_ adapter: ObjectPath, _ application: ObjectPath) -> DBusCall {
        DBusCall(
            BlueZName.service, adapter, BlueZName.gattRegistry, "RegisterApplication",
            [.objectPath(application), .variantDictionary([:])], returning: "", timeout: Limits.call)
    }

    static func unregister(_ adapter: ObjectPath, _ application: ObjectPath) -> DBusCall {
        DBusCall(
            BlueZName.service, adapter, BlueZName.gattRegistry, "UnregisterApplication",
            [.objectPath(application)], returning: "", timeout: Limits.stop)
    }
}
