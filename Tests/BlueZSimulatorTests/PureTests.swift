// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZSimulator

@Suite("Without a bus")
struct PureTests {
    private static func filter(_ values: [String: DBusValue]) throws -> DiscoveryFilter? {
        try DiscoveryFilter(parsing: .variantDictionary(values), for: .bluez566)
    }

    @Test func autoConnectIsKnownFrom583On() throws {
        let filter = DBusValue.variantDictionary(["AutoConnect": .bool(true)])
        #expect(throws: ErrorReply.invalidArguments) { try DiscoveryFilter(parsing: filter, for: .bluez582) }
        #expect(try DiscoveryFilter(parsing: filter, for: .init(version: .init(5, 83))) != nil)
    }

    @Test func anEmptyFilterIsNone() throws {
        #expect(try Self.filter([:]) == nil)
    }

    @Test func aClientWithoutFilterOpensTheScanForAll() throws {
        let strict = try Self.filter(["UUIDs": .strings(["180f"]), "RSSI": .int16(-50)])
        let merged = MergedDiscoveryFilter([strict, nil])
        #expect(merged.uuids.isEmpty)
        #expect(merged.rssi == nil)
        #expect(merged.judgesProximity)
    }

    @Test func theLowestThresholdCounts() throws {
        let near = try Self.filter(["RSSI": .int16(-50)])
        let far = try Self.filter(["RSSI": .int16(-80)])
        #expect(MergedDiscoveryFilter([near, far]).rssi == -80)
        let none = try Self.filter(["Transport": .string("le")])
        #expect(MergedDiscoveryFilter([near, none]).rssi == nil)
    }

    @Test(arguments: [
        (-80 as Int16, 127, false), (-127, 127, false), (-127, -127, true), (-80, -80, true), (-80, -81, false),
    ])
    func aThresholdAdmits(_ threshold: Int16, _ reading: Int, _ admits: Bool) throws {
        let merged = MergedDiscoveryFilter([try Self.filter(["RSSI": .int16(threshold)])])
        let address = BluetoothAddress(rawValue: 1)
        #expect(merged.admits(Advertisement(), rssi: reading, address: address) == admits)
    }

    @Test func aPatternMatchesNamesAndAddresses() throws {
        let merged = MergedDiscoveryFilter([try Self.filter(["Pattern": .string("00:00")])])
        let address = BluetoothAddress(rawValue: 1)
        #expect(merged.admits(Advertisement(), rssi: -50, address: address))
        let named = MergedDiscoveryFilter([try Self.filter(["Pattern": .string("Host")])])
        #expect(named.admits(Advertisement(localName: "Host 1"), rssi: -50, address: address))
        #expect(!named.admits(Advertisement(localName: "Other"), rssi: -50, address: address))
    }

    @Test(
        arguments: [
            ("0x80", 0x80), ("0x9f", 0x9F), ("0xa0", 0x0E), ("128", 0x80), ("0200", 0x80), ("12x", 0x80), ("", 0x0E),
            ("-1", 0x0E), ("99999999999999999999", 0x80), ("0x", 0x80), (" 0x81", 0x81),
        ] as [(String, UInt8)])
    func theTextOfFailedMayBeACode(_ text: String, _ code: UInt8) {
        let error = ATTError(
            applicationError: "org.bluez.Error.Failed", text, notPermitted: .readNotPermitted, profile: .bluez566)
        #expect(error.rawValue == code)
    }

    @Test func flagsGoBothWays() {
        let names = ["read", "write-without-response", "write", "notify", "indicate"]
        let flags = CharacteristicFlags(names)
        #expect(flags.map { CharacteristicFlags.names($0.properties) } == names)
        #expect(CharacteristicFlags([]) == nil)
        #expect(CharacteristicFlags(["read", "sing"]) == nil)
        #expect(CharacteristicFlags(["secure-write"])?.needsEncryptionToWrite == true)
    }

    @Test(arguments: [("5.66", 66), ("5.87", 87)])
    func aProfileHasAName(_ name: String, _ minor: Int) {
        #expect(BehaviourProfile(named: name)?.version == .init(5, minor))
    }

    @Test(arguments: ["", "5", "5.", "6.1", "5.4", "5.100", "5.66.1", "x"])
    func anythingElseIsNoProfile(_ name: String) {
        #expect(BehaviourProfile(named: name) == nil)
    }
}
