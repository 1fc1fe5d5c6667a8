// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@testable import DeviceSession

/// Lines, codecs, facts, pauses: what needs no radio and no time.
@Suite struct FormTests {
    private func lines(_ packets: [String], _ format: LineFormat = LineFormat()) -> [LineAssembly.Token] {
        var assembly = LineAssembly(format)
        return packets.flatMap { assembly.take(Array($0.utf8), at: .now) }
    }

    @Test(arguments: [
        (["OK\r\n"], ["OK"]),
        (["O", "K", "\r", "\n"], ["OK"]),
        (["one\r\ntwo\nthree\r"], ["one", "two", "three"]),
        (["\r\n\r\n", "a\r\n\r\n"], ["a"]),
        (["tail "], []),
        (["\0OK \r\n"], ["OK"]),
        (["gr\u{FC}n\n"], ["grün"]),
    ])
    func packetsBecomeLines(packets: [String], expected: [String]) {
        #expect(lines(packets) == expected.map { .line($0) })
    }

    @Test func aCharacterThatIsCutInTwoIsPutTogether() {
        var assembly = LineAssembly(LineFormat())
        #expect(assembly.take([0x67, 0xC3], at: .now) == [])
        #expect(assembly.take([0xBC, 0x0A], at: .now) == [.line("gü")])
    }

    @Test func aPromptNeedsNoLineEnd() {
        let format = LineFormat(prompt: ">")
        #expect(lines(["41 0C 1A F8\r", "\r>"], format) == [.line("41 0C 1A F8"), .prompt])
        #expect(lines(["a > b\r"], format) == [.line("a > b")])
    }

    @Test func aLineWithoutAnEndIsBounded() {
        let tokens = lines([String(repeating: "x", count: 10_000), "\n"])
        #expect(tokens.count == 3)
        #expect(tokens.first == .line(String(repeating: "x", count: Limits.lineBytes)))
    }

    @Test func aPartialLineIsTakenAfterItsTime() {
        var assembly = LineAssembly(LineFormat(partialLineTimeout: .milliseconds(200)))
        let start = ContinuousClock.now
        #expect(assembly.take(Array("12.5".utf8), at: start) == [])
        #expect(assembly.deadline == start + .milliseconds(200))
        #expect(assembly.timerFired(at: start + .milliseconds(199)) == [])
        #expect(assembly.timerFired(at: start + .milliseconds(200)) == [.line("12.5")])
        #expect(assembly.deadline == nil)
    }

    @Test func exclusiveOrIsItsOwnInverseAndStartsAnewWithEachPacket() {
        let codec = XORCodec(key: [0x5A, 0xA5])
        #expect(codec.encode([0x00, 0x00, 0xFF]) == [0x5A, 0xA5, 0xA5])
        #expect(codec.decode(codec.encode([1, 2, 3])) == [1, 2, 3])
        #expect(codec.encode([0]) == codec.encode([0]))
        #expect(XORCodec(key: []).encode([7]) == [7])
    }

    @Test(
        arguments: [
            (Checksum.xor, [0xF0, 0x0F, 0x55], 0xAA), (.sum, [0xFF, 0x02], 0x01),
            (.twosComplementOfSum, [0, 0, 1, 0], 0xFF),
            (.twosComplementOfSum, [], 0),
        ] as [(Checksum, [UInt8], UInt8)])
    func checksums(checksum: Checksum, bytes: [UInt8], expected: UInt8) {
        #expect(checksum.value(of: bytes) == expected)
    }

    @Test func pausesGrowUpToTheirBound() {
        let policy = ReconnectionPolicy.attempts(5, initialPause: .seconds(1), factor: 2, longestPause: .seconds(5))
        #expect((1...6).map { policy.pause(before: $0) } == [1, 2, 4, 5, 5].map { .seconds($0) } + [nil])
        #expect(ReconnectionPolicy.off.pause(before: 1) == nil)
        #expect(ReconnectionPolicy.attempts(1_000, factor: .infinity).pause(before: 1_000) == .milliseconds(500))
    }

    @Test(
        arguments: [
            ([100], 100), ([0], 0), ([101], nil), ([], nil), ([55, 1], 55),
        ] as [([UInt8], Int?)])
    func aBatteryLevelIsPerCent(value: [UInt8], level: Int?) {
        var facts = DeviceFacts()
        facts.take(value, of: 0x2A19)
        #expect(facts.batteryLevel == level)
    }

    @Test func factsAreTakenByTheirNumbers() {
        var facts = DeviceFacts()
        for (uuid, text) in [(0x2A29, "Acme\0"), (0x2A24, "M1"), (0x2A25, "007"), (0x2A27, "A"), (0x2A26, "1.2")] {
            facts.take(Array(text.utf8), of: BluetoothUUID(UInt16(uuid)))
        }
        facts.take([1, 2, 3, 4, 5, 6, 7, 8], of: 0x2A23)
        facts.take([1, 2, 3], of: 0x2A23)
        facts.take([], of: 0x2A28)
        #expect(facts.manufacturer == "Acme")
        #expect(facts.model == "M1")
        #expect(facts.serialNumber == "007")
        #expect(facts.hardwareRevision == "A")
        #expect(facts.firmwareRevision == "1.2")
        #expect(facts.softwareRevision == nil)
        #expect(facts.systemID == [1, 2, 3, 4, 5, 6, 7, 8])
    }

    @Test func aChannelNeedsCharacteristicsThatCanDoIt() throws {
        let channel = try #require(DeviceProfile.ffe0.channels.first)
        func services(_ properties: CharacteristicProperties, in uuid: BluetoothUUID = 0xFFE0) -> [RemoteService] {
            let characteristic = RemoteCharacteristic(id: "c", uuid: 0xFFE1, properties: properties)
            return [RemoteService(id: "s", uuid: uuid, isPrimary: true, characteristics: [characteristic])]
        }
        #expect(channel.find(in: services([.writeWithoutResponse, .notify])) != nil)
        #expect(channel.find(in: services([.write, .indicate])) != nil)
        #expect(channel.find(in: services([.write])) == nil)
        #expect(channel.find(in: services([.notify])) == nil)
        #expect(channel.find(in: services([.write, .notify], in: 0x180A)) == nil)
    }
}
