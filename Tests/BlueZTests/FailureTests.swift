// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

@Suite struct FailureTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let text: String
        let operation: BlueZ.Operation
        let code: BluetoothError.Code
        init(_ name: String, _ text: String, _ operation: BlueZ.Operation, _ code: BluetoothError.Code) {
            (self.name, self.text, self.operation, self.code) = (name, text, operation, code)
        }
        var testDescription: String { "\(name): \(text), \(operation)" }
    }

    @Test(arguments: [
        Case("org.freedesktop.DBus.Error.ServiceUnknown", "", .reach, .serviceUnavailable),
        Case("org.freedesktop.DBus.Error.NameHasNoOwner", "", .reach, .serviceUnavailable),
        Case("org.freedesktop.systemd1.NoSuchUnit", "", .reach, .serviceUnavailable),
        Case("org.freedesktop.DBus.Error.Spawn.ChildExited", "", .reach, .serviceUnavailable),
        Case("org.freedesktop.DBus.Error.AccessDenied", "", .reach, .unauthorized),
        Case("org.freedesktop.DBus.Error.NoReply", "", .connect, .resetting),
        Case("org.freedesktop.DBus.Error.UnknownObject", "", .connect, .peerNotFound),
        Case("org.freedesktop.DBus.Error.UnknownMethod", "", .connect, .peerNotFound),
        Case("org.freedesktop.DBus.Error.UnknownObject", "", .attribute, .attributeNotFound),
        Case("org.freedesktop.DBus.Error.UnknownMethod", "", .serve, .notSupported),
        Case("org.bluez.Error.NotReady", "", .discover, .poweredOff),
        Case("org.bluez.Error.InProgress", "", .connect, .busy),
        Case("org.bluez.Error.Failed", "le-connection-abort-by-local", .connect, .connectionFailed),
        Case("org.bluez.Error.Failed", "br-connection-canceled", .connect, .connectionFailed),
        Case("org.bluez.Error.Failed", "le-connection-adapter-not-powered", .connect, .poweredOff),
        Case("org.bluez.Error.InProgress", "br-connection-busy", .connect, .busy),
        Case("org.bluez.Error.Failed", "le-connection-concurrent-connection-limit", .connect, .limitExceeded),
        Case("org.bluez.Error.BREDR.ProfileUnavailable", "", .connect, .connectionFailed),
        Case("org.bluez.Error.Failed", "Not connected", .attribute, .notConnected),
        Case("org.bluez.Error.NotPermitted", "Notify acquired", .attribute, .busy),
        Case("org.bluez.Error.NotPermitted", "Maximum advertisements reached", .advertise, .advertisingFailed),
        Case("org.bluez.Error.Failed", "Failed to parse advertisement.", .advertise, .advertisingFailed),
        Case("org.bluez.Error.AlreadyExists", "", .advertise, .advertisingFailed),
        Case("org.example.Odd", "", .serve, .internalFailure),
    ])
    func errorNamesAreTyped(_ it: Case) {
        let error = BlueZFailure.error(DBusError(name: it.name, message: it.text), during: it.operation, subject: "x")
        #expect(error.code == it.code)
        #expect(error.cause?.contains(it.name) == true)
    }

    @Test(arguments: [
        DBusError(.timedOut, "no answer in time"), DBusError(.limitExceeded, "a message of many values"),
        DBusError(name: "org.example.Odd", message: ""), DBusError(.signatureMismatch, "not that"),
    ])
    func whatNobodyHasHeardOfStillSaysWhatToDo(error: DBusError) {
        for operation in [BlueZ.Operation.reach, .discover, .attribute, .serve, .advertise] {
            #expect(BlueZFailure.error(error, during: operation).advice?.contains("systemctl restart") == true)
        }
    }

    @Test(arguments: [DBusError(.disconnected, ""), DBusError(.closed, ""), DBusError(.noReply, "")])
    func whatIsExpectedBackSaysWhatToDoIfItDoesNotCome(error: DBusError) {
        #expect(BlueZFailure.error(error, during: .reach).code == .resetting)
        #expect(BlueZFailure.error(error, during: .reach).advice?.contains("systemctl status") == true)
    }

    @Test(arguments: [
        ("org.bluez.Error.NotPermitted", "Read not permitted", ATTError.readNotPermitted),
        ("org.bluez.Error.NotPermitted", "Write not permitted", .writeNotPermitted),
        ("org.bluez.Error.NotPermitted", "Not paired", .insufficientAuthentication),
        ("org.bluez.Error.InvalidArguments", "Invalid Length", .invalidAttributeValueLength),
        ("org.bluez.Error.InvalidArguments", "Invalid offset", .invalidOffset),
        ("org.bluez.Error.NotAuthorized", "", .insufficientAuthorization),
        ("org.bluez.Error.NotSupported", "", .requestNotSupported),
        ("org.bluez.Error.Failed", "Operation failed with ATT error: 0x80", .application),
        ("org.bluez.Error.Failed", "Operation failed with ATT error: 0x0e", .unlikelyError),
    ])
    func thePeersATTErrorIsFoundInTheText(name: String, text: String, att: ATTError) {
        let error = BlueZFailure.error(DBusError(name: name, message: text), during: .attribute)
        #expect(error.code == .attributeError)
        #expect(error.att == att)
    }

    /// src/gatt-database.c, dbus_error_to_att_ecode.
    @Test(
        arguments: [
            (ATTError.application, "org.bluez.Error.Failed", "0x80"),
            (ATTError(rawValue: 0x9F), "org.bluez.Error.Failed", "0x9f"),
            (.invalidOffset, "org.bluez.Error.InvalidOffset", nil),
            (.invalidAttributeValueLength, "org.bluez.Error.InvalidValueLength", nil),
            (.insufficientAuthorization, "org.bluez.Error.NotAuthorized", nil),
            (.requestNotSupported, "org.bluez.Error.NotSupported", nil),
            (.writeNotPermitted, "org.bluez.Error.NotPermitted", nil),
            (.insufficientResources, "org.bluez.Error.UnlikelyError", nil),
        ] as [(ATTError, String, String?)])
    func ourATTErrorIsNamedSoThatBluetoothdUnderstands(att: ATTError, name: String, text: String?) {
        let error = BlueZFailure.answer(for: att)
        #expect(error.name == name)
        if let text { #expect(error.message == text) }
    }

    @Test func everyErrorAUserCanMendSaysHow() {
        let codes: [DBusError] = [
            DBusError(.noBus, "no"), DBusError(.accessDenied, "no"),
            DBusError(name: "org.freedesktop.DBus.Error.ServiceUnknown", message: ""),
        ]
        for error in codes { #expect(BlueZFailure.error(error, during: .reach).advice != nil) }
    }
}

@Suite struct RadioBlockTests {
    @Test func noSwitchIsNoBlock() {
        #expect(RadioBlock.read(root: "/nonexistent") == nil)
    }
}

@Suite struct LEAdvertisement1Tests {
    private static let request = AdvertisementRequest(
        localName: "host", serviceUUIDs: [0x180A], serviceData: [0x180F: [1]], manufacturerData: [76: [2]])

    private static func value(_ name: String, _ form: AdvertisingForm) -> DBusValue? {
        LEAdvertisement1(request, form: form) { _ in }.property(name, of: BlueZName.advertisement)
    }

    @Test func asksForTheIntervalInFullOrNotAtAll() {
        let full = AdvertisingForm(interval: true, name: true)
        #expect(Self.value("MinInterval", full) == .uint32(100))
        #expect(Self.value("MaxInterval", full) == .uint32(150))
        let less = AdvertisingForm(interval: false, name: true)
        #expect(Self.value("MinInterval", less) == nil)
        #expect(Self.value("MaxInterval", less) == nil)
        #expect(Self.value("LocalName", less) == .string("host"))
        #expect(Self.value("LocalName", AdvertisingForm(interval: false, name: false)) == nil)
    }

    @Test func isDiscoverableAndConnectable() {
        let full = AdvertisingForm(interval: true, name: true)
        #expect(Self.value("Type", full) == .string("peripheral"))
        #expect(Self.value("Discoverable", full) == .bool(true))
        #expect(Self.value("ServiceUUIDs", full) == .strings(["0000180a-0000-1000-8000-00805f9b34fb"]))
    }

    @Test func acceptsThePowerThatBluetoothdTells() {
        let object = LEAdvertisement1(Self.request, form: AdvertisingForm(interval: true, name: true)) { _ in }
        #expect(object.setProperty("TxPower", of: BlueZName.advertisement, to: .int16(7)) == nil)
        #expect(object.interfaces[0].properties.first { $0.name == "TxPower" }?.access == .readWrite)
        #expect(object.property("TxPower", of: BlueZName.advertisement) == nil)
    }
}
