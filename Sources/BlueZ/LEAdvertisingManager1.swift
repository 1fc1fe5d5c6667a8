// SPDX-License-Identifier: MIT

internal import DBus

/// The calls of `org.bluez.LEAdvertisingManager1` that we make.
enum AdvertisingRegistry {
    static func register(_ adapter: ObjectPath, _ advertisement: ObjectPath) -> DBusCall {
        DBusCall(
            BlueZName.service, adapter, BlueZName.advertisingRegistry, "RegisterAdvertisement",
            [.objectPath(advertisement), .variantDictionary([:])], returning: "", timeout: Limits.call)
    }

    static func unregister(_ adapter: ObjectPath, _ advertisement: ObjectPath) -> DBusCall {
        DBusCall(
            BlueZName.service, adapter, BlueZName.advertisingRegistry, "UnregisterAdvertisement",
            [.objectPath(advertisement)], returning: "", timeout: Limits.stop)
    }
}
