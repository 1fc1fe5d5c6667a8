// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@Suite struct UUIDTests {
    static let long = "a1b2c3d4-e5f6-7890-abcd-ef1234567890"

    @Test(arguments: [
        ("180A", "180A", 16), ("0x180a", "180A", 16), ("0X180A", "180A", 16), ("0000", "0000", 16),
        ("0000180a", "180A", 16), ("12345678", "12345678", 32), ("0x12345678", "12345678", 32),
        ("0000180A-0000-1000-8000-00805F9B34FB", "180A", 16), ("12345678-0000-1000-8000-00805f9b34fb", "12345678", 32),
        (long, "A1B2C3D4-E5F6-7890-ABCD-EF1234567890", 128),
    ])
    func everyFormIsReadAndPrintedAtItsShortest(text: String, printed: String, width: Int) throws {
        let uuid = try #require(BluetoothUUID(text))
        #expect(uuid.description == printed)
        #expect(uuid.bitWidth == width)
        #expect(BluetoothUUID(uuid.description) == uuid)
        #expect(BluetoothUUID(uuid.longDescription) == uuid)
        #expect(BluetoothUUID(bytes: uuid.bytes) == uuid)
    }

    @Test func theWidthsOfOneValueAreEqual() {
        let expanded = BluetoothUUID("0000180A-0000-1000-8000-00805F9B34FB")
        #expect(BluetoothUUID(0x180A as UInt16) == expanded)
        #expect(BluetoothUUID(0x180A as UInt32) == expanded)
        #expect(0x180A == expanded)
        #expect(BluetoothUUID(0x180A as UInt16).hashValue == expanded?.hashValue)
        #expect(BluetoothUUID(0x1_180A as UInt32) != expanded)
    }

    @Test func theLongFormIsLowerCaseAndOf36Characters() {
        #expect(BluetoothUUID(0x180A as UInt16).longDescription == "0000180a-0000-1000-8000-00805f9b34fb")
        #expect(BluetoothUUID(Self.long)?.longDescription == Self.long)
    }

    @Test(arguments: [
        "", "0x", "1", "180", "180AA", "1234567", "123456789", "+180", "-180", "+80A", "18 A", " 180A", "180A ",
        "180G", "0x0x", "0x+80A", "１８０Ａ", "é80", "\u{0}180", "1234567\u{0}", "+1234567", "-1234567",
        "a1b2c3d4e5f67890abcdef1234567890", "a1b2c3d4-e5f6-7890-abcd-ef123456789",
        "a1b2c3d4-e5f6-7890-abcd-ef12345678901",
        "a1b2c3d4_e5f6-7890-abcd-ef1234567890", "a1b2c3d-4e5f6-7890-abcd-ef1234567890",
        "------------------------------------", "a1b2c3d4-e5f6-7890-abcd-ef123456789g",
        "{a1b2c3d4-e5f6-7890-abcd-ef12345678}", "a1b2c3d4-e5f6-7890-abcd-ef12345678é",
        "a1b2c3d4-e5f6-7890-abcd-ef12345678 0",
        String(repeating: "0", count: 100_000),
    ])
    func anythingElseIsRefused(text: String) {
        #expect(BluetoothUUID(text) == nil)
    }

    @Test(arguments: [0, 1, 2, 15, 17])
    func onlySixteenBytesAreAUUID(count: Int) {
        #expect(BluetoothUUID(bytes: [UInt8](repeating: 1, count: count)) == nil)
    }

    @Test func uuidsAreOrderedAsPrinted() throws {
        let texts = ["00000001", "180A", "FFFFFFFF", Self.long, "ffffffff-ffff-ffff-ffff-ffffffffffff"]
        let uuids = try texts.map { try #require(BluetoothUUID($0)) }
        #expect(uuids.sorted().map(\.longDescription) == uuids.map(\.longDescription).sorted())
    }

    @Test func bytesAreInPrintedOrder() throws {
        let uuid = try #require(BluetoothUUID(Self.long))
        #expect(
            uuid.bytes == [
                0xA1, 0xB2, 0xC3, 0xD4, 0xE5, 0xF6, 0x78, 0x90, 0xAB, 0xCD, 0xEF, 0x12, 0x34, 0x56, 0x78, 0x90,
            ])
    }
}
