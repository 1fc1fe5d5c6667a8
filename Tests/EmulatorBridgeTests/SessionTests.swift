// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import JSON
import Testing

@testable import EmulatorBridge

/// What one client's session keeps, and for how long.
@Suite(.timeLimit(.minutes(1))) struct SessionTests {
    private static func setNotify(_ link: String, _ number: Int) -> JSONObject {
        [
            "command": "setNotify", "id": .string("n\(number)"), "connectionId": .string(link), "enable": true,
            "serviceUuid": "180D", "characteristicUuid": .string("0000\(1_000 + number)-0000-1000-8000-00805F9B34FA"),
        ]
    }

    /// The names are the client's choice: kept for good, they would fill the bridge's memory.
    @Test func theNamesOfAdvertisementsThatWereRefusedAreForgotten() async throws {
        let fixture = try await SessionFixture.start(isExtended: true)
        for number in 1...20 {
            var advertise = Sample.advertise()
            advertise["id"] = .string("a\(number)")
            advertise["session"] = .string("session \(number)")
            fixture.client.send(advertise)
            #expect(try await fixture.client.failure("a\(number)") == "advertisingFailed")
        }
        #expect(await fixture.session.serveOperations.isEmpty)
        fixture.client.close()
    }

    @Test func noMoreSubscriptionsAreRememberedThanCommandsMayWait() async throws {
        let fixture = try await SessionFixture.start(isExtended: false)
        let (id, link) = try #require(try await fixture.connect().first)
        fixture.client.send(["command": "discoverServices", "connectionId": .string(id)])
        let count = Limits.queuedCommands + 20
        for number in 1...count { fixture.client.send(Self.setNotify(id, number)) }
        #expect(try await fixture.client.failure("n\(count)") == "limitExceeded")
        let wanted = try #require(await fixture.session.links[id]).state
        #expect(wanted.withLock { $0.wanted.count } <= Limits.queuedCommands)
        link.release.set(())
        link.discovery.set(())
        fixture.client.close()
    }

    @Test func aSubscriptionThatWasCalledOffBeforeItsTurnIsForgotten() async throws {
        let fixture = try await SessionFixture.start(isExtended: false)
        let (id, link) = try #require(try await fixture.connect().first)
        fixture.client.send(["command": "discoverServices", "connectionId": .string(id)])
        fixture.client.send(Self.setNotify(id, 1))
        fixture.client.send(["command": "cancel", "target": "n1"])
        link.discovery.set(())
        #expect(try await fixture.client.failure("n1") == "cancelled")
        let wanted = try #require(await fixture.session.links[id]).state
        #expect(wanted.withLock { $0.wanted.isEmpty })
        link.release.set(())
        fixture.client.close()
    }

    /// Addresses change: a client that scans for long enough has heard of any number.
    @Test func aDeviceThatIsHeardAfterAThousandOthersCanBeConnectedTo() async throws {
        let count = Limits.knownDevices + 1
        let fixture = try await SessionFixture.start(devices: count, isExtended: true)
        fixture.client.send(["command": "startScan"])
        var addresses: [JSONValue] = []
        for _ in 1...count {
            addresses.append(try #require(try await fixture.client.next("advertisementFound")["address"]))
        }
        let last = try #require(addresses.last)
        fixture.client.send(["command": "connect", "id": "last", "address": last])
        let answer = try await fixture.client.events.next(within: .seconds(20), "an answer") {
            $0.string("id") == "last" ? $0 : nil
        }
        #expect(answer.string("event") == "connected", "\(answer)")
        fixture.radio.link(to: last.string ?? "")?.release.set(())
        fixture.client.close()
    }

    /// BlueZ needs 2 s for each, and an app that changes devices does not wait for it.
    @Test(arguments: [true, false])
    func linksThatAreGoingDownDoNotKeepAnotherFromComing(isExtended: Bool) async throws {
        let count = Limits.connects + 1
        let fixture = try await SessionFixture.start(devices: count, isExtended: isExtended)
        let links = try await fixture.connect(devices: count)
        for link in links.dropLast() {
            fixture.client.send(["command": "disconnect", "connectionId": .string(link.id)])
        }
        let address = try #require(links.last?.link.peer.rawValue)
        fixture.client.send(["command": "connect", "id": "another", "address": .string(address)])
        let answer = try await fixture.client.events.next(within: .seconds(20), "an answer") {
            $0.string("id") == "another" ? $0 : nil
        }
        #expect(answer.string("event") == "connected")
        for link in links { link.link.release.set(()) }
        fixture.radio.link(to: address)?.release.set(())
        fixture.client.close()
    }

    @Test func aLinkIsTakenDownOnceHoweverOftenItIsAskedFor() async throws {
        let fixture = try await SessionFixture.start(isExtended: true)
        let (id, link) = try #require(try await fixture.connect().first)
        let count = Limits.queuedCommands
        for number in 0...count {
            fixture.client.send([
                "command": "disconnect", "id": .string("d\(number)"), "connectionId": .string(id),
            ])
        }
        #expect(try await fixture.client.failure("d\(count)") == "limitExceeded")
        link.release.set(())
        for number in 0..<count { try await fixture.client.done("d\(number)") }
        #expect(link.disconnects.withLock { $0 } == 1)
        fixture.client.close()
    }

    /// The radio does nothing until the link goes, and the client's next command is read when there is room.
    @Test func aClientThatGoesWhileItsLinesWaitForRoomIsCleanedUpAfter() async throws {
        let fixture = try await SessionFixture.start(isExtended: true)
        let (id, link) = try #require(try await fixture.connect().first)
        link.discovery.set(())
        link.release.set(())
        let write: JSONObject = [
            "command": "writeCharacteristic", "connectionId": .string(id), "serviceUuid": "180D",
            "characteristicUuid": "2A37", "value": "AQ==", "withResponse": false,
        ]
        for _ in 1...Limits.queuedCommands { fixture.client.send(write) }
        let lane = try #require(await fixture.session.links[id]).lane
        try await eventually("the lane is full") { lane.isFull }
        fixture.client.send(write)
        fixture.client.close()
        let ended = Latch<Void>()
        Task { [run = fixture.run] in
            _ = await run.value
            ended.set(())
        }
        try await eventually("the session has ended") { ended.value != nil }
        #expect(link.disconnects.withLock { $0 } == 1)
        #expect(link.writes.withLock { $0 } >= 1)
    }

    /// Two readers of one characteristic, in tasks of their own.
    @Test func eachOfTwoSubscriptionsAtOnceHasItsAnswer() async throws {
        let fixture = try await SessionFixture.start(isExtended: true)
        let (id, link) = try #require(try await fixture.connect().first)
        fixture.client.send(["command": "discoverServices", "connectionId": .string(id)])
        for number in ["first", "second"] {
            fixture.client.send([
                "command": "setNotify", "id": .string(number), "connectionId": .string(id), "enable": true,
                "serviceUuid": "180D", "characteristicUuid": "2A37",
            ])
        }
        fixture.client.send(["command": "dance", "id": "fence"])
        _ = try await fixture.client.failure("fence")
        link.discovery.set(())
        try await fixture.client.done("second")
        try await fixture.client.done("first")
        link.release.set(())
        fixture.client.close()
    }

    /// Answers go through the lane of notifications, which the client fills as fast as it likes.
    @Test func noAnswerToACentralIsLostBehindNotifications() async throws {
        let held = HeldSession()
        let fixture = try await SessionFixture.start(serving: held, isExtended: true)
        let client = fixture.client
        var advertise = Sample.advertise()
        advertise["id"] = "a"
        client.send(advertise)
        try await client.done("a")
        let requests = (1...3).map { RequestID(rawValue: $0) }
        var numbers: [JSONValue] = []
        for request in requests {
            held.write(request)
            numbers.append(try #require(try await client.next("characteristicWriteReceived")["requestId"]))
        }
        var notification: JSONObject = [
            "command": "sendNotification", "serviceUuid": .string(Sample.service),
            "characteristicUuid": .string(Sample.characteristic), "value": "AQ==",
        ]
        for _ in 1...Limits.queuedCommands { client.send(notification) }
        let lane = try #require(await fixture.session.served[""]).notifications
        try await eventually("the lane is full") { lane.isFull }
        for number in numbers { client.send(["command": "respond", "requestId": number]) }
        client.send(["command": "dance", "id": "fence"])
        try await client.events.expectNone(for: .milliseconds(300), "a line that was read while there was no room") {
            $0.string("id") == "fence"
        }
        held.release.set(())
        _ = try await client.failure("fence")
        notification["id"] = "last"
        client.send(notification)
        try await client.done("last")
        #expect(held.answers.withLock { $0 } == requests)
        client.close()
    }
}
