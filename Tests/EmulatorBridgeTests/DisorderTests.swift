// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio
import ContractSuite
import JSON
import SimulatedRadio
import Testing

@testable import EmulatorBridge

/// Commands at the wrong moment: too early for the radio, or overtaken on their way, as those of a client are that sends
/// each from a thread of its own.
@Suite(.timeLimit(.minutes(2))) struct DisorderTests {
    private func pair() async throws -> (Fixture, host: TestClient, client: TestClient, link: String) {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        let client = try await fixture.client()
        host.send(Sample.advertise(properties: ["write", "writeWithoutResponse", "notify"]))
        return (fixture, host, client, try await client.connectToSample())
    }

    /// Tries until it has gone well once: on a busy machine the late command can be later than the bridge waits.
    private func atLeastOnce(_ attempt: () async throws -> Bool) async throws {
        for _ in 1...10 where try await attempt() { return }
        Issue.record("none of ten attempts went well")
    }

    /// Returns when the bridge has taken all that was sent before.
    private func barrier(_ client: TestClient) async throws {
        client.send(["command": "dance", "id": "barrier"])
        _ = try await client.next("error") { $0.string("id") == "barrier" }
    }

    @Test func aDisconnectThatOvertakesAWriteLetsItThrough() async throws {
        try await atLeastOnce {
            let (fixture, host, client, link) = try await pair()
            client.send(["command": "disconnect", "connectionId": .string(link)])
            try await barrier(client)
            client.send(Sample.on(link, "writeCharacteristic", ["id": "w", "value": "Aw==", "withResponse": true]))
            let answer = try await client.events.next(within: .seconds(20), "an answer") {
                $0.string("id") == "w" ? $0.string("event") : nil
            }
            if answer == "writeAcknowledged" {
                #expect(try await host.next("characteristicWriteReceived").string("value") == "Aw==")
            }
            _ = try await client.next("disconnected")
            await fixture.bridge.stop()
            return answer == "writeAcknowledged"
        }
    }

    @Test func aStopAdvertiseThatOvertakesANotificationLetsItThrough() async throws {
        try await atLeastOnce {
            let (fixture, host, client, link) = try await pair()
            client.send(Sample.on(link, "setNotify", ["enable": true]))
            client.send(Sample.on(link, "writeCharacteristic", ["value": "AQ==", "withResponse": true]))
            let central = try #require(try await host.next("characteristicWriteReceived").string("connectionId"))
            host.send(["command": "stopAdvertise"])
            try await barrier(host)
            host.send(Sample.on(central, "sendNotification", ["id": "n", "value": "Ag=="]))
            let isThrough = try await within(.seconds(20), ContinuousClock(), "a value or an error") {
                while true {
                    if await client.events.take({ $0.string("event") == "characteristicChanged" ? $0 : nil }) != nil {
                        return true
                    }
                    if await host.events.take({ $0.string("id") == "n" ? $0 : nil }) != nil { return false }
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
            await fixture.bridge.stop()
            return isThrough
        }
    }

    @Test func aConnectThatComesBeforeTheRadioIsOnIsKept() async throws {
        let host = try await Fixture.start()
        let phone = host.medium.addAdapter()
        let bridge = try EmulatorBridge(
            radios: .shared(phone),
            configuration: BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: 0)))
        let server = try await host.client()
        server.send(Sample.advertise())
        let client = try await TestClient.connect(try await bridge.start())
        client.send(["command": "startScan"])
        let found = try await client.next("advertisementFound")
        client.send(["command": "stopScan"])
        phone.setPowered(false)
        _ = try await client.next("bluetoothStateChanged")
        client.send(["command": "connect", "id": "c", "address": found["address"] ?? .null])
        client.send(["command": "dance", "id": "d"])
        // The connect has been taken, and has not failed.
        _ = try await client.next("error") { $0.string("id") == "d" }
        phone.setPowered(true)
        _ = try await client.next("connected") { $0.string("id") == "c" }
        await host.bridge.stop()
        await bridge.stop()
        #expect(host.medium.links.isEmpty)
    }

    @Test func aClientThatGoesWhileItsConnectIsKeptLeavesNothing() async throws {
        let fixture = try await Fixture.start()
        let peer = try await fixture.medium.addAdapter().serve(
            [], advertising: AdvertisementRequest(serviceUUIDs: [0x180D]))
        let client = try await fixture.client()
        client.send(["command": "startScan"])
        let found = try await client.next("advertisementFound")
        await peer.stop()
        fixture.radio.setPowered(false)
        _ = try await client.next("bluetoothStateChanged")
        client.send(["command": "connect", "address": found["address"] ?? .null])
        fixture.radio.setPowered(true)
        _ = try await client.next("bluetoothStateChanged")
        // Now it listens for a device that is gone.
        client.close()
        try await eventually("the client is cleaned up") { fixture.bridge.clientCount == 0 }
        await fixture.bridge.stop()
    }

    /// A service that takes its time with the first word.
    @Test func theGreetingDoesNotWaitForASilentRadio() async throws {
        let (statuses, says) = AsyncStream.makeStream(of: AdapterStatus.self)
        let fixture = try await Fixture.start { _, radio in .shared(SilentRadio(radio: radio, statuses: statuses)) }
        let client = try await fixture.client()
        #expect(try await client.next("bridgeReady").string("bluetoothState") == "unknown")
        says.yield(AdapterStatus(.poweredOn))
        #expect(try await client.next("bluetoothStateChanged").string("bluetoothState") == "poweredOn")
        await fixture.bridge.stop()
    }
}

/// A radio whose adapter says nothing but what a test lets it.
private struct SilentRadio: Radio {
    let radio: SimulatedRadio
    let statuses: AsyncStream<AdapterStatus>

    var clock: any MonotonicClock { radio.clock }
    var notificationScope: NotificationScope { radio.notificationScope }
    func adapterStatuses() -> AsyncStream<AdapterStatus> { statuses }

    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan { try await radio.scan(for: filter) }

    func connect(to peer: PeerIdentifier, timeout: Duration) async throws(BluetoothError) -> any PeripheralConnection {
        try await radio.connect(to: peer, timeout: timeout)
    }

    func serve(
        _ services: [LocalService], advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> any PeripheralSession {
        try await radio.serve(services, advertising: advertisement)
    }
}
