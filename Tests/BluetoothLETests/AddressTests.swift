// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@Suite struct AddressTests {
    @Test(arguments: [
        ("AA:BB:CC:DD:EE:FF", 0xAABB_CCDD_EEFF as UInt64), ("00:00:00:00:00:00", 0),
        ("0a:0B:0c:0D:0e:0F", 0x0A0B_0C0D_0E0F),
    ])
    func anAddressIsReadInEitherCaseAndPrintedInUpperCase(text: String, value: UInt64) throws {
        let address = try #require(BluetoothAddress(text))
        #expect(address.rawValue == value)
        #expect(address.kind == .public)
        #expect(address.description == text.uppercased())
    }

    @Test(arguments: [
        "", ":", ":::::", "AA:BB:CC:DD:EE", "AA:BB:CC:DD:EE:FF:00", "AA:BB:CC:DD:EE:", "AA-BB-CC-DD-EE-FF",
        "AABBCCDDEEFF",
        "A:BB:CC:DD:EE:FF", "AAA:B:CC:DD:EE:FF", "GG:BB:CC:DD:EE:FF", "+A:BB:CC:DD:EE:FF", "-A:BB:CC:DD:EE:FF",
        " A:BB:CC:DD:EE:FF", "AA:BB:CC:DD:EE:FF ", "ＡA:BB:CC:DD:EE:FF", "é:BB:CC:DD:EE:FF", "\u{0}A:BB:CC:DD:EE:FF",
        String(repeating: "AA:", count: 10_000),
    ])
    func anythingElseIsRefused(text: String) {
        #expect(BluetoothAddress(text) == nil)
    }

    @Test func bitsAboveThe48thAreDropped() {
        #expect(BluetoothAddress(rawValue: .max).description == "FF:FF:FF:FF:FF:FF")
        #expect(BluetoothAddress(rawValue: 1 << 48) == BluetoothAddress(rawValue: 0))
    }

    @Test func aPublicAndARandomAddressOfEqualBitsDiffer() {
        #expect(BluetoothAddress(rawValue: 1) != BluetoothAddress(rawValue: 1, kind: .random))
        #expect(BluetoothAddress("00:00:00:00:00:01", kind: .random)?.kind == .random)
    }
}
