// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

/// What neither the air nor a bluetoothd gone mad may do to the object view.
@Suite struct HostileObjectsTests {
    private static let adapter: ObjectPath = "/org/bluez/hci0"

    private static func device(_ name: String) throws -> ObjectPath {
        try #require(ObjectPath(validating: "\(adapter)/\(name)"))
    }

    private static func view(devices: [ObjectPath]) -> ObjectView {
        var view = ObjectView()
        view.load([adapter: [BlueZName.adapter: ["Powered": .bool(true)]]])
        for device in devices { _ = view.added(device, [BlueZName.device: [:]]) }
        return view
    }

    @Test func aDeviceCannotTakeTheRoomOfTheOthersAttributes() throws {
        let (greedy, modest) = (try Self.device("dev_1"), try Self.device("dev_2"))
        var view = Self.view(devices: [greedy, modest])
        for number in 0..<2 * Limits.attributes {
            let service = try #require(ObjectPath(validating: "\(greedy)/service\(number)"))
            _ = view.added(service, [BlueZName.gattService: ["UUID": .string("180a")]])
            let member = try #require(service.appending("char1"))
            _ = view.added(member, [BlueZName.gattCharacteristic: ["UUID": .string("2a29")]])
        }
        #expect(view.services.count + view.characteristics.count == Limits.attributesOfADevice)
        let service = try #require(modest.appending("service1"))
        let member = try #require(service.appending("char2"))
        _ = view.added(service, [BlueZName.gattService: ["UUID": .string("180a")]])
        _ = view.added(member, [BlueZName.gattCharacteristic: ["UUID": .string("2a29"), "MTU": .uint16(99)]])
        #expect(view.remoteServices(of: modest).first?.characteristics.map(\.id) == [member.string])
        #expect(view.attMTU(of: modest) == 99)
        _ = view.removed(greedy, [BlueZName.device])
        #expect(view.services.count == 1 && view.characteristics.count == 1)
    }

    @Test func whatLeavesOneByOneMakesRoomAgain() throws {
        let device = try Self.device("dev_1")
        var view = Self.view(devices: [device])
        for number in 0..<3 * Limits.attributesOfADevice {
            let service = try #require(ObjectPath(validating: "\(device)/service\(number)"))
            let member = try #require(service.appending("char1"))
            _ = view.added(service, [BlueZName.gattService: ["UUID": .string("180a")]])
            _ = view.added(member, [BlueZName.gattCharacteristic: ["UUID": .string("2a29")]])
            #expect(view.remoteServices(of: device).count == 1)
            _ = view.removed(member, [BlueZName.gattCharacteristic])
            _ = view.removed(service, [BlueZName.gattService])
        }
    }

    /// A character can have any number of bytes.
    @Test func aNameIsBoundedInBytes() throws {
        let device = try Self.device("dev_1")
        var view = Self.view(devices: [device])
        let name = "e" + String(repeating: "\u{301}", count: 100_000)
        _ = view.changed(device, BlueZName.device, ["Name": .string(name)], invalidated: [])
        let kept = try #require(view.devices[device]?.advertisement.localName)
        #expect(kept.utf8.count <= BlueZ.Limits.nameBytes)
        #expect(Array(name.utf8.prefix(kept.utf8.count)) == Array(kept.utf8))
    }

    @Test(arguments: Self.wrongReadings)
    func whatIsNoReadingIsNone(value: DBusValue) throws {
        let device = try Self.device("dev_1")
        var view = Self.view(devices: [device])
        let changes = view.changed(device, BlueZName.device, ["RSSI": value, "TxPower": value], invalidated: [])
        #expect(view.devices[device]?.rssi == nil)
        #expect(view.devices[device]?.advertisement.txPower == nil)
        #expect(changes == [.deviceChanged(device, [.heard, .advertisement])])
    }

    @Test func aValueLongerThanAnAttributeIsNoNotification() throws {
        let device = try Self.device("dev_1")
        var view = Self.view(devices: [device])
        let member = try #require(device.appending("service1")?.appending("char1"))
        _ = view.added(member, [BlueZName.gattCharacteristic: ["UUID": .string("2a29")]])
        for (count, isOne) in [(512, true), (513, false), (1 << 20, false)] {
            let value = [UInt8](repeating: 1, count: count)
            let changes = view.changed(member, BlueZName.gattCharacteristic, ["Value": .bytes(value)], invalidated: [])
            #expect(changes.isEmpty != isOne)
        }
    }

    private static let wrongReadings: [DBusValue] = [
        .int64(Int64.min), .int64(Int64.max), .uint64(UInt64.max), .int16(128), .string("-50"),
    ]

    @Test func devicesThatComeAndGoLeaveNoTraceAndTheOldestThatMayGoIsFound() {
        var arrivals = DeviceArrivals()
        let paths = (0..<6).compactMap { ObjectPath(validating: "/d\($0)") }
        for path in paths { arrivals.came(path) }
        arrivals.left(paths[0])
        #expect(arrivals.oldest { _ in true } == paths[1])
        #expect(arrivals.oldest { $0 != paths[1] } == paths[2])
        arrivals.left(paths[2])
        // The one that could not go counts as new.
        #expect(arrivals.oldest { _ in true } == paths[3])
        #expect(arrivals.oldest { _ in false } == nil)
        for path in paths { arrivals.left(path) }
        #expect(arrivals.oldest { _ in true } == nil)
    }
}
