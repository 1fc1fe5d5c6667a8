// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@Suite struct AdvertisementBudgetTests {
    static let long = BluetoothUUID("a1b2c3d4-e5f6-7890-abcd-ef1234567890") ?? 0
    static let otherLong = BluetoothUUID("b1b2c3d4-e5f6-7890-abcd-ef1234567890") ?? 0

    struct Case: Sendable {
        let request: AdvertisementRequest
        let bytes: Int
    }

    static let cases = [
        Case(request: AdvertisementRequest(serviceUUIDs: []), bytes: 3),
        Case(request: AdvertisementRequest(serviceUUIDs: [0x180A]), bytes: 7),
        Case(request: AdvertisementRequest(serviceUUIDs: [0x180A, 0x180F]), bytes: 9),
        Case(request: AdvertisementRequest(serviceUUIDs: [0x180A, 0x180A]), bytes: 7),
        Case(request: AdvertisementRequest(serviceUUIDs: [BluetoothUUID(0x1234_5678 as UInt32)]), bytes: 9),
        Case(request: AdvertisementRequest(serviceUUIDs: [long]), bytes: 21),
        Case(
            request: AdvertisementRequest(serviceUUIDs: [long, 0x180A, BluetoothUUID(0x1234_5678 as UInt32)]), bytes: 31
        ),
        Case(request: AdvertisementRequest(serviceUUIDs: [long, otherLong]), bytes: 37),
        Case(request: AdvertisementRequest(serviceUUIDs: [long], serviceData: [0x180A: [1, 2]]), bytes: 27),
        Case(
            request: AdvertisementRequest(serviceUUIDs: [long], manufacturerData: [0xFFFF: [1, 2, 3, 4, 5, 6]]),
            bytes: 31),
        Case(
            request: AdvertisementRequest(serviceUUIDs: [long], manufacturerData: [0xFFFF: [1, 2, 3, 4, 5, 6, 7]]),
            bytes: 32),
    ]

    @Test(arguments: cases)
    func everyElementCostsItsBytesAndTwoOfHeader(_ example: Case) {
        let budget = AdvertisementBudget(example.request)
        #expect(budget.advertisementBytes == example.bytes)
        #expect((budget.error == nil) == (example.bytes <= 31))
    }

    @Test func theErrorSaysHowMuchIsOver() throws {
        let error = try #require(
            AdvertisementBudget(AdvertisementRequest(serviceUUIDs: [Self.long, Self.otherLong])).error)
        #expect(error.code == .invalidArgument)
        #expect(error.message.contains("6 bytes over"))
        #expect(error.advice != nil)
    }

    @Test(arguments: [(0, 0), (1, 3), (29, 31), (30, 32)])
    func theNameHasTheScanResponseToItself(length: Int, bytes: Int) {
        let name = String(repeating: "n", count: length)
        let budget = AdvertisementBudget(AdvertisementRequest(localName: name, serviceUUIDs: [Self.long]))
        #expect(budget.scanResponseBytes == bytes)
        #expect((budget.error == nil) == (length <= AdvertisementBudget.longestName))
    }

    @Test func aNameIsMeasuredInBytesOfUTF8() {
        let request = AdvertisementRequest(localName: String(repeating: "é", count: 15), serviceUUIDs: [])
        #expect(AdvertisementBudget(request).error?.message == "the advertised name is 1 bytes too long")
    }
}
