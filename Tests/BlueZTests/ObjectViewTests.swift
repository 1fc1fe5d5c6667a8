// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

@Suite struct ObjectViewTests {
    private static let adapter: ObjectPath = "/org/bluez/hci0"
    private static let device: ObjectPath = "/org/bluez/hci0/dev_1"
    private static let service: ObjectPath = "/org/bluez/hci0/dev_1/service0001"
    private static let characteristic: ObjectPath = "/org/bluez/hci0/dev_1/service0001/char0002"

    private static func loaded() -> ObjectView {
        var view = ObjectView()
        view.load([
            adapter: ["org.bluez.Adapter1": ["Powered": .bool(true), "Address": .string("00:11:22:33:44:55")]],
            device: ["org.bluez.Device1": ["Address": .string("C0:00:00:00:00:01"), "RSSI": .int16(-50)]],
            service: ["org.bluez.GattService1": ["UUID": .string("180a"), "Primary": .bool(true)]],
            characteristic: [
                "org.bluez.GattCharacteristic1": [
                    "UUID": .string("2a29"), "Flags": .strings(["read", "notify", "encrypt-read"]), "MTU": .uint16(185),
                ]
            ],
        ])
        return view
    }

    @Test func readsTheSnapshot() {
        let view = Self.loaded()
        #expect(view.adapters[Self.adapter]?.powered == true)
        #expect(view.devices[Self.device]?.address?.description == "C0:00:00:00:00:01")
        let services = view.remoteServices(of: Self.device)
        #expect(services.map(\.uuid) == [0x180A])
        #expect(services.first?.characteristics.first?.properties == [.read, .notify])
        #expect(view.attMTU(of: Self.device) == 185)
    }

    /// A service whose `UUIDs` nothing that is advertised changes any more may be of a time before we listened.
    @Test func whatWasThereFromTheBeginningRemembersItsServices() {
        var view = ObjectView()
        let known: [String: DBusValue] = ["UUIDs": .strings(["180a"])]
        view.load([Self.adapter: ["org.bluez.Adapter1": [:]], Self.device: ["org.bluez.Device1": known]])
        #expect(view.devices[Self.device]?.remembersServices == true)
        let fresh: ObjectPath = "/org/bluez/hci0/dev_2"
        _ = view.added(fresh, ["org.bluez.Device1": known])
        #expect(view.devices[fresh]?.remembersServices == false)
        _ = view.changed(fresh, BlueZName.device, ["ServicesResolved": .bool(true)], invalidated: [])
        #expect(view.devices[fresh]?.remembersServices == true)
        #expect(Self.loaded().devices[Self.device]?.remembersServices == false)
    }

    /// bluez.md, rule 18.
    @Test func aReadingIsASignOfLifeAndItsInvalidationIsNone() {
        var view = Self.loaded()
        let heard = view.changed(Self.device, BlueZName.device, ["RSSI": .int16(-60)], invalidated: [])
        #expect(heard == [.deviceChanged(Self.device, [.heard, .rssi])])
        #expect(view.changed(Self.device, BlueZName.device, [:], invalidated: ["RSSI"]) == [])
        #expect(view.devices[Self.device]?.rssi == nil)
    }

    @Test func namesAndServicesOfAConnectedDeviceAreNoSignOfLife() {
        var view = Self.loaded()
        let changes = view.changed(
            Self.device, BlueZName.device, ["UUIDs": .strings(["180a"]), "Name": .string("x")], invalidated: [])
        #expect(changes == [.deviceChanged(Self.device, .advertisement)])
        #expect(view.devices[Self.device]?.advertisement.serviceUUIDs == [0x180A])
    }

    @Test func dataIsMerged() {
        var view = Self.loaded()
        _ = view.changed(
            Self.device, BlueZName.device,
            [
                "ManufacturerData": .dictionary(
                    key: "q", value: .variant, [DBusEntry(.uint16(76), .variant(.bytes([1, 2])))])
            ], invalidated: [])
        _ = view.changed(Self.device, BlueZName.device, ["TxPower": .int16(7)], invalidated: [])
        let advertisement = view.devices[Self.device]?.advertisement
        #expect(advertisement?.manufacturerData == [76: [1, 2]])
        #expect(advertisement?.txPower == 7)
    }

    @Test func wrongTypesChangeNothing() {
        var view = Self.loaded()
        let before = view.devices[Self.device]
        _ = view.changed(
            Self.device, BlueZName.device,
            ["Connected": .string("yes"), "UUIDs": .byte(1), "ServiceData": .strings([]), "RSSI": .string("-1")],
            invalidated: [])
        #expect(view.devices[Self.device] == before)
    }

    @Test func signalsOfUnknownObjectsAreIgnored() {
        var view = Self.loaded()
        #expect(view.changed("/org/bluez/hci0/dev_9", BlueZName.device, ["RSSI": .int16(1)], invalidated: []) == [])
        #expect(view.changed("/", BlueZName.gattCharacteristic, ["Value": .bytes([1])], invalidated: []) == [])
        #expect(view.removed("/org/bluez/hci0/dev_9", [BlueZName.device]) == [])
    }

    @Test func aValueIsPassedOnAndNotKept() {
        var view = Self.loaded()
        let changes = view.changed(
            Self.characteristic, BlueZName.gattCharacteristic, ["Value": .bytes([1, 2])], invalidated: [])
        #expect(changes == [.value(device: Self.device, Self.characteristic, [1, 2])])
    }

    @Test func anInvalidatedValueIsNoNotification() {
        var view = Self.loaded()
        #expect(view.changed(Self.characteristic, BlueZName.gattCharacteristic, [:], invalidated: ["Value"]) == [])
    }

    @Test func whenTheAdapterGoesSoDoesAllBeneathIt() {
        var view = Self.loaded()
        _ = view.changed(Self.device, BlueZName.device, ["Connected": .bool(true)], invalidated: [])
        #expect(
            view.removed(Self.adapter, [BlueZName.adapter]) == [.deviceRemoved(Self.device, connected: true), .adapter])
        #expect(view.devices.isEmpty && view.services.isEmpty && view.characteristics.isEmpty)
    }

    @Test func theAirCannotMakeItGrowAndConnectedDevicesStay() throws {
        var view = Self.loaded()
        _ = view.changed(Self.device, BlueZName.device, ["Connected": .bool(true)], invalidated: [])
        var forgotten: [ObjectView.Change] = []
        for number in 0..<Limits.devices + 5 {
            let path = try #require(ObjectPath(validating: "/org/bluez/hci0/dev_x\(number)"))
            forgotten += view.added(path, [BlueZName.device: ["RSSI": .int16(-50)]]).filter {
                if case .deviceRemoved = $0 { true } else { false }
            }
        }
        #expect(view.devices.count == Limits.devices)
        #expect(view.devices[Self.device] != nil)
        #expect(forgotten.first == .deviceRemoved("/org/bluez/hci0/dev_x0", connected: false))
        #expect(forgotten.count == 6)
    }

    /// bluetoothd 5.87 keeps each central's object; one that comes again after a thousand others is still told of.
    @Test func aForgottenDeviceThatConnectsIsKnownAgainUntilItLeaves() {
        var view = Self.loaded()
        let device: ObjectPath = "/org/bluez/hci0/dev_forgotten"
        #expect(view.changed(device, BlueZName.device, ["Connected": .bool(false)], invalidated: []) == [])
        #expect(view.changed(device, BlueZName.device, ["RSSI": .int16(-50)], invalidated: []) == [])
        let came = view.changed(device, BlueZName.device, ["Connected": .bool(true)], invalidated: [])
        guard case .deviceAdded(device, let change)? = came.first else {
            Issue.record("not known again: \(came)")
            return
        }
        #expect(change.contains(.connected))
        let left = view.changed(device, BlueZName.device, ["Connected": .bool(false)], invalidated: [])
        #expect(left == [.deviceChanged(device, [.connected])])
    }
}

@Suite struct AdapterChoiceTests {
    private static func adapter(_ path: ObjectPath, _ properties: [String: DBusValue]) -> Adapter1 {
        var adapter = Adapter1(path: path)
        adapter.apply(properties)
        return adapter
    }

    private static let adapters = [
        adapter("/org/bluez/hci0", ["Powered": .bool(false), "Address": .string("00:00:00:00:00:01")]),
        adapter(
            "/org/bluez/hci1",
            ["Powered": .bool(true), "Roles": .strings([]), "Address": .string("00:00:00:00:00:02")]),
        adapter(
            "/org/bluez/hci2",
            [
                "Powered": .bool(true), "Roles": .strings(["central"]), "Address": .string("00:00:00:00:00:03"),
                "AddressType": .string("random"),
            ]),
    ]

    @Test(
        arguments: [
            (nil, "hci2"), ("hci0", "hci0"), ("00:00:00:00:00:03", "hci2"), ("00:00:00:00:00:01", "hci0"),
            ("hci9", nil),
        ] as [(String?, String?)])
    func byNameByAddressElseTheFirstPoweredOneWithLE(wanted: String?, name: String?) {
        #expect(AdapterChoice(wanted: wanted).pick(from: Self.adapters, current: nil)?.name == name)
    }

    @Test func theOneInUseStaysWhileItWillDo() {
        let second = Self.adapter("/org/bluez/hci3", ["Powered": .bool(true)])
        #expect(AdapterChoice().pick(from: Self.adapters + [second], current: second.path)?.name == "hci3")
    }

    @Test func whatIsMissingIsSaid() {
        #expect(AdapterChoice().absence(among: []).code == .adapterNotFound)
        #expect(AdapterChoice(wanted: "hci9").absence(among: Self.adapters).advice?.contains("hci0, hci1") == true)
    }

    @Test func offAndBlockedAreToldApart() {
        let off = Self.adapters[0]
        #expect(off.powerError(block: nil)?.advice?.contains("bluetoothctl power on") == true)
        #expect(off.powerError(block: .soft)?.advice?.contains("rfkill unblock") == true)
        #expect(off.powerError(block: .hard)?.message.contains("switch") == true)
        var blocked = off
        blocked.apply(["PowerState": .string("off-blocked")])
        #expect(blocked.powerError(block: nil)?.advice?.contains("rfkill unblock") == true)
        #expect(Self.adapters[2].powerError(block: .soft) == nil)
    }
}
