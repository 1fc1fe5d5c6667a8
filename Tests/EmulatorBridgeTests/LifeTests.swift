// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio
import ContractSuite
import JSON
import SimulatedRadio
import Testing

@testable import EmulatorBridge

/// Clients come and go.
@Suite(.timeLimit(.minutes(2))) struct LifeTests {
    @Test func aClientThatGoesLeavesNoScanNoLinkAndNoAdvertisement() async throws {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        let client = try await fixture.client()
        host.send(Sample.advertise())
        _ = try await client.connectToSample()
        client.send(["command": "startScan"])
        _ = try await client.next("advertisementFound")
        #expect(fixture.medium.links.count == 1)
        client.close()
        try await eventually("the client is cleaned up") { fixture.bridge.clientCount == 1 }
        #expect(fixture.medium.links.isEmpty)
        _ = try await host.next("disconnected")
        host.close()
        try await eventually("the host is cleaned up") { fixture.bridge.clientCount == 0 }
        let scan = try await fixture.medium.addAdapter().scan(for: ScanFilter())
        let reports = Recorder(scan.events, clock: ContinuousClock())
        try await reports.expectNone(for: .milliseconds(500), "an advertisement") { _ in true }
        await scan.stop()
        await fixture.bridge.stop()
    }

    /// In the middle of a connect that will not end by itself.
    @Test func aClientThatGoesInTheMiddleOfAConnectLeavesNothing() async throws {
        let fixture = try await Fixture.start { medium, radio in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        host.send(Sample.advertise())
        let client = try await fixture.client()
        client.send(["command": "startScan"])
        let found = try await client.next("advertisementFound")
        fixture.medium.conditions.connectionTime = .milliseconds(300)
        client.send(["command": "connect", "address": found["address"] ?? .null])
        client.close()
        try await eventually("the client is cleaned up") { fixture.bridge.clientCount == 1 }
        try await Task.sleep(for: .milliseconds(400))
        #expect(fixture.medium.links.isEmpty)
        await fixture.bridge.stop()
    }

    /// The radio does nothing until the link goes, and the end of the connection comes behind lines that are not read.
    @Test func aClientThatFloodsASlowRadioAndGoesIsCleanedUpAfter() async throws {
        let held = HeldRadio()
        let fixture = try await Fixture.start { _, _ in .shared(held) }
        let client = try await fixture.client()
        client.send(["command": "startScan"])
        let address = try #require(try await client.next("advertisementFound").string("address"))
        client.send(["command": "connect", "address": .string(address)])
        let id = try #require(try await client.next("connected").string("connectionId"))
        let link = try #require(held.link(to: address))
        link.discovery.set(())
        link.release.set(())
        for _ in 1...Limits.queuedCommands + 300 {
            client.send([
                "command": "writeCharacteristic", "connectionId": .string(id), "serviceUuid": "180D",
                "characteristicUuid": "2A37", "value": "AQ==", "withResponse": false,
            ])
        }
        client.close()
        try await eventually("the client is cleaned up") { fixture.bridge.clientCount == 0 }
        #expect(link.disconnects.withLock { $0 } == 1)
        await fixture.bridge.stop()
    }

    @Test func manyEmulatorsAtOnceHaveEachTheirOwn() async throws {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for pair in 0..<10 {
                group.addTask { try await converse(pair, fixture) }
            }
            try await group.waitForAll()
        }
        await fixture.bridge.stop()
        #expect(fixture.medium.links.isEmpty)
    }

    @Test func theEndOfTheBridgeIsToldAndEndsEverything() async throws {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        let client = try await fixture.client()
        host.send(Sample.advertise())
        _ = try await client.connectToSample()
        await fixture.bridge.stop()
        #expect(try await client.next("error").string("code") == "serviceUnavailable")
        try await client.waitForEnd()
        try await host.waitForEnd()
        #expect(fixture.medium.links.isEmpty)
        #expect(fixture.bridge.clientCount == 0)
        await fixture.bridge.stop()
    }

    @Test func theEndOfTheBridgeDoesNotWaitForARadioThatDoesNotLetGo() async throws {
        let held = HeldRadio()
        var configuration = BridgeConfiguration()
        configuration.cleanUp = .milliseconds(1)
        let fixture = try await Fixture.start(configuration) { _, _ in .shared(held) }
        let client = try await fixture.client()
        client.send(["command": "startScan"])
        let address = try #require(try await client.next("advertisementFound").string("address"))
        client.send(["command": "connect", "address": .string(address)])
        _ = try await client.next("connected")
        let stopped = Latch<Void>()
        Task { [bridge = fixture.bridge] in
            await bridge.stop()
            stopped.set(())
        }
        try await eventually("the bridge has ended") { stopped.value != nil }
        #expect(fixture.bridge.clientCount == 1)
        held.link(to: address)?.release.set(())
        try await eventually("the client is cleaned up after, late") { fixture.bridge.clientCount == 0 }
    }

    // MARK: - Tokens and addresses

    @Test func anAddressThatOthersCanReachNeedsAToken() async throws {
        let radio = SimulatedMedium(clock: ContinuousClock()).addAdapter()
        let everywhere = BridgeEndpoint(host: "0.0.0.0", port: 0)
        let open = try EmulatorBridge(
            radios: .shared(radio), configuration: BridgeConfiguration(endpoint: everywhere))
        await #expect(throws: BluetoothError.self) { try await open.start() }
        let guarded = try EmulatorBridge(
            radios: .shared(radio), configuration: BridgeConfiguration(endpoint: everywhere, token: "secret"))
        #expect(try await guarded.start().port > 0)
        await guarded.stop()
        #expect(throws: BluetoothError.self) {
            try EmulatorBridge(radios: .shared(radio), configuration: BridgeConfiguration(token: ""))
        }
    }

    @Test func withATokenNothingIsDoneBeforeItIsShown() async throws {
        let fixture = try await Fixture.start(BridgeConfiguration(token: "secret"))
        let stranger = try await fixture.client()
        #expect(try await stranger.next("bridgeReady").bool("tokenRequired") == true)
        stranger.send(Sample.advertise())
        #expect(try await stranger.next("error").string("code") == "unauthorized")
        try await stranger.waitForEnd()
        for token in ["secre", "secrets", "Secret", ""] {
            let guesser = try await fixture.client()
            guesser.send(["command": "hello", "extension": 1, "id": "h", "token": .string(token)])
            #expect(try await guesser.next("error").string("code") == "unauthorized")
            try await guesser.waitForEnd()
        }
        let friend = try await fixture.client()
        friend.send(["command": "hello", "extension": 1, "id": "h", "token": "secret"])
        _ = try await friend.next("done") { $0.string("id") == "h" }
        friend.send(["command": "startScan", "id": "s"])
        _ = try await friend.next("done") { $0.string("id") == "s" }
        await fixture.bridge.stop()
    }
}

/// One pair's whole exchange, with a service of its own.
private func converse(_ pair: Int, _ fixture: Fixture) async throws {
    let host = try await fixture.client()
    let client = try await fixture.client()
    let service = "A1B2C3D4-E5F6-7890-ABCD-EF12345678\(pair + 10)"
    let named: JSONObject = ["serviceUuid": .string(service)]
    host.send(Sample.advertise(service))
    client.send(["command": "startScan", "serviceUuids": [.string(service)]])
    let found = try await client.next("advertisementFound")
    client.send(["command": "connect", "address": found["address"] ?? .null])
    let link = try require(try await client.next("connected").string("connectionId"), "the connection's id")
    var subscribe: JSONObject = ["enable": true]
    for (key, value) in named { subscribe[key] = value }
    client.send(Sample.on(link, "setNotify", subscribe))
    for round in 1...20 {
        let value = JSONValue.string(Data.base64(pair, round))
        var more = named
        more["value"] = value
        more["withResponse"] = true
        client.send(Sample.on(link, "writeCharacteristic", more))
        let write = try await host.next("characteristicWriteReceived")
        try require(write["value"] == value, "another pair's value: \(write)")
        more["withResponse"] = nil
        host.send(Sample.on(write.string("connectionId") ?? "", "sendNotification", more))
        let changed = try await client.next("characteristicChanged")
        try require(changed["value"] == value, "another pair's value: \(changed)")
    }
    client.close()
    host.close()
}

private enum Data {
    static func base64(_ pair: Int, _ round: Int) -> String { Base64.encode([UInt8(pair), UInt8(round)]) }
}
