// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

/// A session at a fake bluetoothd that does what the real one does during registration.
struct HostBench {
    static let id = LocalCharacteristicID(service: 0, characteristic: 0)
    static let services = [
        LocalService(0x180A, characteristics: [LocalCharacteristic(0x2A29, [.read, .write, .notify])])
    ]
    static let request = AdvertisementRequest(localName: "host", serviceUUIDs: [0x180A])

    let fake: FakeBlueZ
    let radio: BlueZRadio
    let session: any PeripheralSession
    let client: String
    let path: ObjectPath

    init(_ given: FakeBlueZ? = nil) async throws {
        if let given { fake = given } else { fake = try await FakeBlueZ() }
        Self.callBack(fake)
        radio = fake.radio()
        session = try await radio.serve(Self.services, advertising: Self.request)
        let call = try await fake.called("RegisterApplication")
        client = call.sender
        path = try #require(call.arguments[0].asObjectPath?.appending("service0")?.appending("char0"))
    }

    /// Rule 10: bluetoothd calls back before it answers.
    static func callBack(_ fake: FakeBlueZ) {
        fake.on("RegisterApplication") { call in
            guard let root = call.arguments[0].asObjectPath,
                let answer = try? await fake.call(
                    call.sender, root, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects"),
                answer.first?.asManagedObjects?.isEmpty == false
            else { return call.fail(name: "org.bluez.Error.Failed", message: "no objects") }
            call.reply()
        }
        fake.on("RegisterAdvertisement") { call in
            guard let path = call.arguments[0].asObjectPath else { return }
            _ = try? await fake.call(call.sender, path, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
            let all = try? await fake.call(
                call.sender, path, "org.freedesktop.DBus.Properties", "GetAll",
                [.string("org.bluez.LEAdvertisement1")])
            _ = try? await fake.call(
                call.sender, path, "org.freedesktop.DBus.Properties", "Set",
                [.string("org.bluez.LEAdvertisement1"), .string("TxPower"), .variant(.int16(7))])
            if all?.first?.asDictionary?["Type"] == .string("peripheral") { return call.reply() }
            call.fail(name: "org.bluez.Error.Failed", message: "Failed to parse advertisement.")
        }
    }

    func call(_ member: String, _ body: [DBusValue] = []) async throws(DBusError) -> [DBusValue] {
        try await fake.call(client, path, "org.bluez.GattCharacteristic1", member, body)
    }

    static func options(_ device: Int, offset: Int = 0) -> DBusValue {
        .variantDictionary([
            "device": .objectPath(FakeBlueZ.device(device)), "mtu": .uint16(185), "offset": .uint16(UInt16(offset)),
        ])
    }
}
