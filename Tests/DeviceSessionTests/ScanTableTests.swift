// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@testable import DeviceSession

@Suite struct ScanTableTests {
    private let start = ContinuousClock.now

    private func discovery(
        _ peer: String,
        name: String? = nil,
        rssi: Int? = -50,
        services: Set<BluetoothUUID> = [],
        manufacturerData: [UInt16: [UInt8]] = [:],
        address: String? = nil
    ) -> Discovery {
        Discovery(
            peer: PeerIdentifier(peer),
            address: address.flatMap { BluetoothAddress($0) },
            advertisement: Advertisement(
                localName: name, serviceUUIDs: services, manufacturerData: manufacturerData),
            rssi: rssi,
            time: start
        )
    }

    private func table(_ rules: ScanRules, _ discoveries: [Discovery]) -> [String] {
        var table = ScanTable(rules)
        for discovery in discoveries { table.heard(discovery, at: start) }
        return table.results.map(\.id.rawValue)
    }

    @Test func theStrongestComesFirstAndOthersAsTheyWereSeen() {
        let heard = [discovery("a", rssi: -70), discovery("b", rssi: -40), discovery("c", rssi: nil)]
        #expect(table(ScanRules(), heard) == ["b", "a", "c"])
        #expect(table(ScanRules(order: .firstSeenFirst), heard.reversed()) == ["c", "b", "a"])
    }

    @Test func namesAreSortedWithoutRegardToCase() {
        let heard = [
            discovery("a", name: "zebra"), discovery("b", name: "Apple", rssi: -60), discovery("c", name: "apple"),
        ]
        #expect(table(ScanRules(order: .byName), heard) == ["c", "b", "a"])
    }

    @Test func filtersLeaveOutWhatIsNotMeant() {
        let heard = [
            discovery("a", name: "Meter 1", rssi: -60, services: [0xFFE0]), discovery("b", name: "Lamp", rssi: -40),
            discovery("c", rssi: 127), discovery("d", name: "Meter 2", rssi: -90),
        ]
        #expect(table(ScanRules(namePrefix: "Meter"), heard) == ["a", "d"])
        #expect(table(ScanRules(minimumRSSI: -60), heard) == ["b", "a"])
        #expect(table(ScanRules(services: [0xFFE0, 0x180F]), heard) == ["a"])
    }

    @Test(
        arguments: [
            [0xAA, 0xBB, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06], [0x06, 0x05, 0x04, 0x03, 0x02, 0x01],
            [0x03, 0x04, 0x05, 0x06],
        ] as [[UInt8]])
    func anAddressIsFoundInManufacturerData(data: [UInt8]) {
        let rules = ScanRules(address: BluetoothAddress("01:02:03:04:05:06"))
        // In the last case the first two octets stand where the company's number does.
        let company: UInt16 = data.count == 4 ? 0x0201 : 0x0059
        let heard = [discovery("a", manufacturerData: [company: data]), discovery("b", manufacturerData: [1: [1, 2]])]
        #expect(table(rules, heard) == ["a"])
    }

    @Test func anAddressIsFoundWhereTheRadioTellsIt() {
        let rules = ScanRules(address: BluetoothAddress("01:02:03:04:05:06"))
        #expect(table(rules, [discovery("a", address: "01:02:03:04:05:06"), discovery("b")]) == ["a"])
    }

    @Test func whoIsSilentLeaves() {
        var table = ScanTable(ScanRules(staleAfter: .seconds(5)))
        table.heard(discovery("a"), at: start)
        table.heard(discovery("b"), at: start + .seconds(3))
        #expect(table.deadline == start + .seconds(5))
        table.timerFired(at: start + .seconds(5))
        #expect(table.results.map(\.id) == [PeerIdentifier("b")])
        table.heard(discovery("b"), at: start + .seconds(7))
        table.timerFired(at: start + .seconds(8))
        #expect(table.results.count == 1)
        table.gone(PeerIdentifier("b"))
        #expect(table.results.isEmpty)
        #expect(table.deadline == nil)
    }

    @Test func aReportWithoutAReadingKeepsTheLastOne() {
        var table = ScanTable(ScanRules())
        table.heard(discovery("a", rssi: -44), at: start)
        table.heard(discovery("a", rssi: nil), at: start)
        table.heard(discovery("a", rssi: 127), at: start)
        #expect(table.results.first?.rssi == -44)
    }

    @Test func aCrowdIsBoundedAtTheCostOfTheSilent() {
        var table = ScanTable(ScanRules(order: .firstSeenFirst))
        for number in 0..<1_000 {
            table.heard(discovery("\(number)"), at: start + .milliseconds(number))
            table.heard(discovery("0"), at: start + .milliseconds(number))
        }
        #expect(table.results.count == Limits.scanResults)
        #expect(table.result(of: PeerIdentifier("0")) != nil)
        #expect(table.result(of: PeerIdentifier("1")) == nil)
    }

    @Test func theDisplayNameIsTheBestThereIs() {
        #expect(ScanResult(discovery("p", name: "Lamp"), rssi: nil).displayName == "Lamp")
        #expect(
            ScanResult(discovery("p", name: "", address: "01:02:03:04:05:06"), rssi: nil).displayName
                == "01:02:03:04:05:06")
        #expect(ScanResult(discovery("p"), rssi: nil).displayName == "p")
    }
}
