// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio
import ContractSuite
import JSON
import SimulatedRadio
import Testing

@testable import EmulatorBridge

/// Several emulators behind one adapter, as on a real machine.
@Suite(.timeLimit(.minutes(2))) struct SharedAdapterTests {
    private static func service(_ number: Int) -> String { "A1B2C3D4-E5F6-7890-ABCD-EF12345678\(number + 10)" }

    /// Each hears of its own service's writes only, and its answer reaches whoever wrote.
    @Test func emulatorsOnOneAdapterHaveEachTheirOwnCentrals() async throws {
        let hosts = try await Fixture.start()
        let phones = try EmulatorBridge(
            radios: .each { hosts.medium.addAdapter() },
            configuration: BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: 0)))
        let endpoint = try await phones.start()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask { try await Self.converse(number, try await hosts.client(), endpoint) }
            }
            try await group.waitForAll()
        }
        await hosts.bridge.stop()
        await phones.stop()
        #expect(hosts.medium.links.isEmpty)
    }

    private static func converse(_ number: Int, _ host: TestClient, _ endpoint: BridgeEndpoint) async throws {
        let service = JSONValue.string(service(number))
        let client = try await TestClient.connect(endpoint)
        host.send(Sample.advertise(Self.service(number)))
        client.send(["command": "startScan", "serviceUuids": [service]])
        let found = try await client.next("advertisementFound")
        client.send(["command": "stopScan"])
        client.send(["command": "connect", "address": found["address"] ?? .null])
        let link = try require(try await client.next("connected").string("connectionId"), "the connection's id")
        client.send(Sample.on(link, "setNotify", ["serviceUuid": service, "enable": true]))
        for round in 1...10 {
            let value = JSONValue.string(Base64.encode([UInt8(number), UInt8(round)]))
            let more: JSONObject = ["serviceUuid": service, "value": value, "withResponse": true]
            client.send(Sample.on(link, "writeCharacteristic", more))
            let write = try await host.next("characteristicWriteReceived")
            try require(write["value"] == value && write["serviceUuid"] == service, "another's write: \(write)")
            host.send(
                Sample.on(
                    write.string("connectionId") ?? "", "sendNotification", ["serviceUuid": service, "value": value]))
            let changed = try await client.next("characteristicChanged")
            try require(changed["value"] == value, "another's value: \(changed)")
        }
        client.close()
        host.close()
    }

    /// An adapter has one link to a device. The second client is told so, the first notices nothing, and it is free again.
    @Test func twoEmulatorsTakeTurnsWithOneDevice() async throws {
        let fixture = try await Fixture.start()
        let host = try await fixture.medium.addAdapter().serve(
            [], advertising: AdvertisementRequest(serviceUUIDs: [0x180D]))
        let (first, second) = (try await fixture.client(), try await fixture.client())
        for client in [first, second] { client.send(["command": "startScan", "serviceUuids": []]) }
        let address = try await first.next("advertisementFound")["address"] ?? .null
        _ = try await second.next("advertisementFound")
        first.send(["command": "connect", "address": address])
        let link = try require(try await first.next("connected").string("connectionId"), "the connection's id")
        second.send(["command": "connect", "address": address])
        let refusal = try await second.next("connectionFailed")
        #expect(refusal.string("error")?.hasPrefix("the device is connected") == true, "\(refusal)")
        first.send(Sample.on(link, "discoverServices", [:]))
        _ = try await first.next("servicesDiscovered")
        first.send(Sample.on(link, "disconnect", [:]))
        _ = try await first.next("disconnected")
        second.send(["command": "connect", "address": address])
        _ = try await second.next("connected")
        await host.stop()
        await fixture.bridge.stop()
    }

    /// An app takes whoever connects for its own: it would count another emulator's centrals, and answer them.
    @Test func aCentralIsToldToTheOneWhoseCharacteristicsItUsesAndToNobodyElse() async throws {
        let fixture = try await Fixture.start()
        let (first, second) = (try await fixture.client(), try await fixture.client())
        first.send(Sample.advertise())
        second.send(Sample.advertise("180D"))
        let phone = fixture.medium.addAdapter()
        // Both serve before anybody connects.
        _ = try await phone.hear(within: .seconds(20)) { $0.advertisement.serviceUUIDs.contains(0x180D) }
        let service = try #require(BluetoothUUID(Sample.service))
        let turns: [(BluetoothUUID, TestClient)] = [(service, first), (0x180D, second), (service, first)]
        for (service, host) in turns {
            let found = try #require(
                try await phone.hear(within: .seconds(20)) { $0.advertisement.serviceUUIDs.contains(service) })
            let link = try await phone.connect(to: found.peer, timeout: .seconds(20))
            let services = try await link.discoverServices(awaiting: nil)
            let used = try #require(services.first { $0.uuid == service }?.characteristics.first)
            try await link.write([1], to: used, type: .withResponse)
            _ = try await host.next("characteristicWriteReceived")
            await link.disconnect()
            _ = try await host.next("disconnected")
            _ = try await host.next("connectionRequestReceived")
        }
        // Whatever was told of another's central came before one's own last.
        for host in [first, second] {
            let another = await host.events.take { object in
                object.string("event") == "connectionRequestReceived" ? object : nil
            }
            #expect(another == nil)
        }
        await fixture.bridge.stop()
    }

    /// Two scans on one adapter are not one: each filters, and ends, for itself.
    @Test func scansOnOneAdapterAreEachTheirOwn() async throws {
        let fixture = try await Fixture.start()
        let gadget = fixture.medium.addAdapter()
        let session = try await gadget.serve(
            [],
            advertising: AdvertisementRequest(serviceUUIDs: [0x180D], serviceData: [0x180D: [1, 2]]))
        let first = try await fixture.client()
        let second = try await fixture.client()
        let third = try await fixture.client()
        first.send(["command": "startScan", "serviceUuids": ["180D"]])
        second.send(["command": "startScan", "serviceUuids": ["180F"]])
        third.send(["command": "startScan"])
        let found = try await first.next("advertisementFound")
        #expect(found.array("serviceUuids") == ["180D"])
        #expect(found.object("serviceData") == ["180D": "AQI="])
        third.send(["command": "stopScan"])
        third.close()
        _ = try await first.next("advertisementFound")
        #expect(await second.events.take { $0.string("event") == "advertisementFound" ? true : nil } == nil)
        await session.stop()
        await fixture.bridge.stop()
    }
}
