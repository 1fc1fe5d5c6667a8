// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import DeviceSession

/// Payloads, packets, codecs, and the events about them.
@Suite(.timeLimit(.minutes(2))) struct SendingTests {
    private let bench = Bench()
    private static let frames = DeviceProfile.nordicUART.speaking(.frames(.twosComplement))

    @Test(arguments: [(23, 20), (185, 182), (517, 512)])
    func aPayloadIsSplitByTheMTU(mtu: Int, packet: Int) async throws {
        bench.medium.setMTU(mtu, between: bench.phone, and: bench.gadget)
        let profile = DeviceProfile.nordicUART.speaking(.packets)
        try await bench.withSession(profile) { (session, device) async throws in
            let payload = (0..<1_100).map { UInt8(truncatingIfNeeded: $0) }
            try await session.sendPayload(payload)
            let packets = await device.packets((payload.count + packet - 1) / packet)
            #expect(packets.map(\.count).max() == packet)
            #expect(Array(packets.joined()) == payload)
        }
    }

    @Test func packetsCanBeSmallerAndSlower() async throws {
        var profile = DeviceProfile.nordicUART.speaking(.packets)
        profile.longestPacket = 8
        profile.packetPause = .milliseconds(50)
        let clock = bench.clock
        try await bench.withSession(profile) { [profile] (session, device) async throws in
            #expect(session.profile == profile)
            let began = clock.now
            try await session.sendPayload([UInt8](repeating: 1, count: 20))
            #expect(began.duration(to: clock.now) == .milliseconds(100))
            // Without response: the radio has taken the last one, and the device has yet to hear it.
            #expect(await device.packets(3).map(\.count) == [8, 8, 4])
        }
    }

    private static let ways: [(CharacteristicProperties, DeviceProfile.WriteMode)] = [
        (.write, .withoutResponse), (.writeWithoutResponse, .withResponse),
        ([.write, .writeWithoutResponse], .automatic),
    ]

    @Test(arguments: ways)
    func writesGoTheWayThatTheDeviceAllows(
        properties: CharacteristicProperties,
        mode: DeviceProfile.WriteMode
    ) async throws {
        var profile = Bench.at
        profile.writeMode = mode
        try await bench.withSession(profile, services: [ScriptedDevice.uart(.nordicUART, writing: properties)]) {
            (session, _) async throws in
            #expect(try await session.run("AT+VERSION") == ["1.2.3"])
        }
    }

    @Test func aWriteThatIsRefusedIsAnErrorAndAnEvent() async throws {
        var profile = Bench.at
        profile.writeMode = .withResponse
        let gadget = bench.gadget
        try await bench.withSession(profile) { (session, _) async throws in
            let log = EventLog()
            session.onEvent = { log.add($0) }
            gadget.inject(.nextWrite(answers: .insufficientAuthentication))
            let error = await failure { try await session.sendPayload([1, 2]) }
            #expect(error?.code == .writeFailed)
            #expect(error?.cause?.att == .insufficientAuthentication)
            guard case .sendFinished(let report) = log.all.last else {
                Issue.record("\(log.all)")
                return
            }
            #expect(report.bytes == 2)
            #expect(report.error == error)
            #expect(try await session.run("AT") == [])
        }
    }

    @Test func framesGoOutAndComeIn() async throws {
        try await bench.withSession(Self.frames) { (session, device) async throws in
            let log = EventLog()
            session.onEvent = { log.add($0) }
            try await session.sendPayload([0])
            #expect(await device.packets(1) == [[0x7B, 0, 0, 1, 0, 0xFF, 0x7D]])
            await device.say([[0x7B, 0, 0, 1], [1, 0xFE, 0x7D], [0x7B, 0, 0, 1, 1, 0x00, 0x7D]])
            await device.pause(.milliseconds(1))
            let payloads = log.all.compactMap {
                if case .payload(let bytes, let meta) = $0 { (bytes, meta) } else { nil }
            }
            #expect(payloads.map(\.0) == [[1]])
            #expect(payloads.first?.1.rssi == -50)
            #expect(log.all.contains(.crcError([0x7B, 0, 0, 1, 1, 0x00, 0x7D])))
            #expect(log.all.contains(.raw([0x7B, 0, 0, 1])))
            #expect(await failure { try await session.run("AT") }?.code == .invalidArgument)
        }
    }

    @Test func packetsAreEvents() async throws {
        try await bench.withSession(DeviceProfile.nordicUART.speaking(.packets)) { (session, device) async throws in
            let events = session.events
            await device.say([[1, 2], [3]])
            var payloads: [[UInt8]] = []
            for await event in events {
                if case .payload(let bytes, _) = event { payloads.append(bytes) }
                if payloads.count == 2 { break }
            }
            #expect(payloads == [[1, 2], [3]])
        }
    }

    @Test func aCodecCanBeChangedWhileConnected() async throws {
        let script: ScriptedDevice.Script = { _, device in
            await device.say([Array("secret\nOK\n".utf8).map { $0 ^ 0x5A }])
        }
        try await bench.withSession(script: script) { (session, device) async throws in
            // A device that speaks in a code understands nothing and answers nothing that we understand.
            try await session.use(.xor(key: 0x11))
            #expect(await failure { try await session.run("AT") }?.code == .timedOut)
            try await session.use(.xor(key: 0x5A))
            #expect(session.codecName == "xor")
            let reply = Task { try await session.run("AT") }
            // The channel settles first.
            await device.pause(.milliseconds(400))
            #expect(device.packets.last == Array("AT\r\n".utf8).map { $0 ^ 0x5A })
            await device.say([Array("secret\nOK\n".utf8).map { $0 ^ 0x5A }])
            #expect(try await reply.value == ["secret"])
        }
    }

    @Test func anOwnCodecMayAddToAPacketAndRefuseOne() async throws {
        struct Tagged: PacketCodec {
            var name: String { "tagged" }
            var overhead: Int { 1 }
            func encode(_ packet: [UInt8]) -> [UInt8] { [0xEE] + packet }
            func decode(_ packet: [UInt8]) -> [UInt8]? { packet.first == 0xEE ? Array(packet.dropFirst()) : nil }
        }
        bench.medium.setMTU(23, between: bench.phone, and: bench.gadget)
        var configuration = DeviceSession.Configuration()
        configuration.codec = Tagged()
        let profile = DeviceProfile.nordicUART.speaking(.packets)
        try await bench.withSession(profile, configuration) { (session, device) async throws in
            let log = EventLog()
            session.onEvent = { log.add($0) }
            try await session.sendPayload([UInt8](repeating: 1, count: 38))
            #expect(await device.packets(2).map(\.count) == [20, 20])
            await device.say([[1, 2], [0xEE, 3]])
            await device.pause(.milliseconds(1))
            #expect(log.all.contains(.raw([1, 2])))
            let payloads = log.all.compactMap { if case .payload(let bytes, _) = $0 { bytes } else { nil } }
            #expect(payloads == [[3]])
        }
    }

    @Test func aSecondMessageWithinTheQuietWindowIsBusy() async throws {
        try await bench.withSession { (session, device) async throws in
            let log = EventLog()
            session.onEvent = { log.add($0) }
            let id = try await session.sendPayloadNoWait(Array("AT\r\n".utf8))
            #expect(await failure { try await session.sendNoWait("AT") }?.code == .busy)
            await device.pause(.milliseconds(100))
            try await session.sendNoWait("AT")
            await device.pause(.milliseconds(1))
            let ids = log.all.compactMap { if case .sendFinished(let report) = $0 { report.id } else { nil } }
            #expect(ids.first == id)
            #expect(ids.count == 2)
            #expect(log.lines.map(\.text) == ["OK", "OK"])
        }
    }

    @Test func whatShallNotBeLoggedIsNot() async throws {
        final class Log: SessionLogger {
            let entries = Locked<[String]>([])
            func log(_ entry: SessionLogEntry) { entries.withLock { $0.append(entry.message) } }
        }
        let log = Log()
        var configuration = DeviceSession.Configuration()
        configuration.logger = log
        try await bench.withSession(Bench.at, configuration) { (session, device) async throws in
            _ = try await session.run("AT+VERSION", log: false)
            _ = await failure { try await session.run("AT+PASSWORD=1234", log: false) }
            // Two answers that come when nobody waits for them any more: to a command that was given up in time, and to
            // one that was cancelled.
            let late = await failure { try await session.run("AT+SLOW", timeout: .milliseconds(2_900), log: false) }
            #expect(late?.code == .timedOut)
            _ = try await session.run("AT")
            let cancelled = Task { try await session.run("AT+SLOW", log: false) }
            await device.pause(.milliseconds(2_900))
            cancelled.cancel()
            #expect(await failure { try await cancelled.value }?.code == .cancelled)
            _ = try await session.run("AT+SPLIT")
        }
        let text = log.entries.withLock { $0.joined(separator: "\n") }
        #expect(!text.contains("VERSION") && !text.contains("1.2.3") && !text.contains("1234"))
        #expect(!text.contains("SLOW") && !text.contains("slow"))
        #expect(text.contains("> AT+SPLIT") && text.contains("< first"))
    }

    @Test func eventsComeOnceInEachOfTheThreeWays() async throws {
        try await bench.withSession { (session, _) async throws in
            let (single, lines, all) = (EventLog(), EventLog(), EventLog())
            session.onEvent = { single.add($0) }
            let token = try session.addObserver(of: .line) { lines.add($0) }
            let other = try session.addObserver { all.add($0) }
            let stream = session.events
            #expect(try await session.run("AT+VERSION") == ["1.2.3"])
            session.remove(token)
            #expect(try await session.run("AT") == [])
            #expect(lines.all.count == 3)
            #expect(all.all == single.all)
            #expect(single.lines.count == 4)
            session.remove(other)
            await session.teardown()
            var streamed: [DeviceEvent] = []
            for await event in stream { streamed.append(event) }
            #expect(streamed == single.all)
            #expect(throws: DeviceSessionError.self) { try session.addObserver { _ in } }
        }
    }
}
