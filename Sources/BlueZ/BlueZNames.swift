// SPDX-License-Identifier: MIT

internal import DBus

/// Names on the bus (BlueZ, doc/org.bluez.*.rst).
enum BlueZName {
    static let service = "org.bluez"
    static let adapter = "org.bluez.Adapter1"
    static let device = "org.bluez.Device1"
    static let gattService = "org.bluez.GattService1"
    static let gattCharacteristic = "org.bluez.GattCharacteristic1"
    static let gattRegistry = "org.bluez.GattManager1"
    static let advertisement = "org.bluez.LEAdvertisement1"
    static let advertisingRegistry = "org.bluez.LEAdvertisingManager1"
    static let properties = "org.freedesktop.DBus.Properties"
    static let objectManager = "org.freedesktop.DBus.ObjectManager"
}

/// Error names of BlueZ (src/error.c).
enum BlueZError {
    static let failed = "org.bluez.Error.Failed"
    static let inProgress = "org.bluez.Error.InProgress"
    static let notReady = "org.bluez.Error.NotReady"
    static let notSupported = "org.bluez.Error.NotSupported"
    static let notPermitted = "org.bluez.Error.NotPermitted"
    static let notAuthorized = "org.bluez.Error.NotAuthorized"
    static let notConnected = "org.bluez.Error.NotConnected"
    static let alreadyConnected = "org.bluez.Error.AlreadyConnected"
    static let alreadyExists = "org.bluez.Error.AlreadyExists"
    static let doesNotExist = "org.bluez.Error.DoesNotExist"
    static let noSuchAdapter = "org.bluez.Error.NoSuchAdapter"
    static let invalidArguments = "org.bluez.Error.InvalidArguments"
    static let invalidLength = "org.bluez.Error.InvalidLength"
    static let invalidValueLength = "org.bluez.Error.InvalidValueLength"
    static let invalidOffset = "org.bluez.Error.InvalidOffset"
}
