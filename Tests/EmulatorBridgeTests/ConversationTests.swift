// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio
import ContractSuite
import Foundation
import JSON
import SimulatedRadio
import Testing

@testable import EmulatorBridge

/// What a client of the plain protocol sees, against the protocol's file.
@Suite(.timeLimit(.minutes(2))) struct ConversationTests {
    /// The fields of each event, as the file describes them; `true`: has to be there.
    private static func fields(from file: String = #filePath) throws -> [String: [String: Bool]] {
        let root = URL(fileURLWithPath: file)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let data = try Data(contentsOf: root.appendingPathComponent("shared/bridge-protocol.json"))
        let events = try #require(try JSONObject(parsing: Array(data)).object("events"))
        return Dictionary(
            uniqueKeysWithValues: events.map { name, description in
                let fields = description.object?.object("fields") ?? [:]
                let known = fields.map { key, value in
                    let text = value.string ?? "object"
                    return (key, !(text.hasPrefix("string?") || text.hasPrefix("object?")))
                }
                return (name, Dictionary(uniqueKeysWithValues: known))
            }
        )
    }

    private func check(_ events: [JSONObject]) throws {
        let known = try Self.fields()
        for event in events {
            let name = try #require(event.string("event"))
            guard var fields = known[name] else { continue }
            fields["event"] = true
            fields["id"] = false
            // How a client learns that there is more.
            if name == "bridgeReady" { fields["extension"] = false }
            for key in event.keys { #expect(fields[key] != nil, "\(name) has “\(key)”") }
            for (key, isNeeded) in fields where isNeeded { #expect(event[key] != nil, "\(name) lacks “\(key)”") }
        }
        #expect(Set(events.compactMap { $0.string("event") }).isSuperset(of: known.keys), "\(events)")
    }

    /// Both flows of the file, and every event in it.
    @Test func everyEventOfTheFileIsToldAsTheFileSays() async throws {
        let host = try await Fixture.start()
        let phone = host.medium.addAdapter()
        let other = try EmulatorBridge(
            radios: .shared(phone),
            configuration: BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: 0)))
        let server = try await host.client()
        let client = try await TestClient.connect(try await other.start())
        var seen: [JSONObject] = [try await server.next("bridgeReady"), try await client.next("bridgeReady")]
        #expect(seen[0].string("platform") == "Linux" && seen[0].string("bluetoothState") == "poweredOn")
        server.send(Sample.advertise(properties: ["read", "write", "notify"]))
        client.send(["command": "startScan", "serviceUuids": [.string(Sample.service)]])
        let found = try await client.next("advertisementFound")
        #expect(found.string("localName") == "MyDevice")
        #expect(found.array("serviceUuids") == [.string(Sample.service)])
        client.send(["command": "stopScan"])
        client.send(["command": "connect", "id": "0", "address": "nowhere"])
        seen += [found, try await client.next("connectionFailed")]
        client.send(["command": "connect", "id": "req-001", "address": found["address"] ?? .null])
        let connected = try await client.next("connected")
        #expect(connected.string("id") == "req-001" && connected["address"] == found["address"])
        let link = try #require(connected.string("connectionId"))
        client.send(["command": "discoverServices", "connectionId": .string(link)])
        let services = try await client.next("servicesDiscovered")
        #expect(
            services.array("services") == [
                [
                    "uuid": .string(Sample.service),
                    "characteristics": [
                        ["uuid": .string(Sample.characteristic), "properties": ["read", "write", "notify"]]
                    ],
                ]
            ])
        client.send(Sample.on(link, "setNotify", ["enable": true]))
        client.send(Sample.on(link, "writeCharacteristic", ["id": "w", "value": "AQI=", "withResponse": true]))
        seen += [connected, services, try await client.next("writeAcknowledged") { $0.string("id") == "w" }]
        let came = try await server.next("connectionRequestReceived")
        let write = try await server.next("characteristicWriteReceived")
        #expect(write.string("value") == "AQI=" && write["connectionId"] == came["connectionId"])
        let central = try #require(came.string("connectionId"))
        server.send(Sample.on(central, "sendNotification", ["value": "eyJ0eXBlIjoiaGFuZG9mZiJ9"]))
        let changed = try await client.next("characteristicChanged")
        #expect(changed.string("value") == "eyJ0eXBlIjoiaGFuZG9mZiJ9")
        client.send(Sample.on(link, "readCharacteristic", ["id": "r"]))
        let read = try await client.next("characteristicRead") { $0.string("id") == "r" }
        #expect(read.string("value") == "eyJ0eXBlIjoiaGFuZG9mZiJ9", "the last notification")
        client.send(["command": "disconnect", "connectionId": .string(link)])
        seen += [came, write, changed, read, try await client.next("disconnected")]
        seen.append(try await server.next("disconnected"))
        host.radio.setPowered(false)
        seen.append(try await server.next("bluetoothStateChanged") { $0.string("bluetoothState") == "poweredOff" })
        seen.append(try await refusedScan())
        try check(seen)
        await host.bridge.stop()
        await other.stop()
    }

    private func refusedScan() async throws -> JSONObject {
        let fixture = try await Fixture.start { _, radio in .shared(RefusingRadio(radio)) }
        let client = try await fixture.client()
        client.send(["command": "startScan"])
        let failed = try await client.next("scanFailed")
        await fixture.bridge.stop()
        return failed
    }

    @Test func commandsThatComeBeforeTheRadioIsOnAreKept() async throws {
        let fixture = try await Fixture.start()
        fixture.radio.setPowered(false)
        let phone = fixture.medium.addAdapter()
        let other = try EmulatorBridge(
            radios: .shared(phone),
            configuration: BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: 0)))
        phone.unplug()
        let host = try await fixture.client()
        let client = try await TestClient.connect(try await other.start())
        #expect(try await host.next("bridgeReady").string("bluetoothState") == "poweredOff")
        #expect(try await client.next("bridgeReady").string("bluetoothState") == "unsupported")
        host.send(Sample.advertise())
        client.send(["command": "startScan", "serviceUuids": [.string(Sample.service)]])
        fixture.radio.setPowered(true)
        phone.plug()
        _ = try await client.next("advertisementFound")
        #expect(await client.events.take { $0.string("event") == "scanFailed" ? true : nil } == nil)
        await fixture.bridge.stop()
        await other.stop()
    }

    @Test func failuresComeBackWithTheirIds() async throws {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        let client = try await fixture.client()
        host.send(Sample.advertise())
        let link = try await client.connectToSample()
        client.send(Sample.on(link, "readCharacteristic", ["id": "r"]))
        let read = try await client.next("error") { $0.string("id") == "r" }
        #expect(read.string("command") == "readCharacteristic" && read.string("error") != nil)
        #expect(read.string("code") == "notSupported")
        client.send(
            Sample.on(link, "writeCharacteristic", ["id": "w", "value": "AQ==", "characteristicUuid": "2A29"]))
        #expect(try await client.next("error") { $0.string("id") == "w" }.string("code") == "attributeNotFound")
        client.send(["command": "dance", "id": "d"])
        #expect(try await client.next("error") { $0.string("id") == "d" }.string("command") == "dance")
        client.send(Sample.on("nowhere", "setNotify", ["id": "n", "enable": true]))
        #expect(try await client.next("error") { $0.string("id") == "n" }.string("code") == "notConnected")
        host.send(Sample.on("nobody", "sendNotification", ["id": "s", "value": ""]))
        #expect(try await host.next("error") { $0.string("id") == "s" }.string("code") == "notConnected")
        await fixture.bridge.stop()
    }

    /// Real clients send each command from a thread of its own.
    @Test func aWriteThatOvertakesItsSetNotifyMissesNoAnswer() async throws {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        let client = try await fixture.client()
        host.send(Sample.advertise())
        let link = try await client.connectToSample()
        // Neither has waited for a discovery, and the end overtakes nothing that was sent before it.
        client.send(Sample.on(link, "writeCharacteristic", ["id": "w", "value": "AQ==", "withResponse": true]))
        client.send(Sample.on(link, "setNotify", ["enable": true]))
        let write = try await host.next("characteristicWriteReceived")
        host.send(
            Sample.on(try #require(write.string("connectionId")), "sendNotification", ["value": "Ag=="]))
        host.send(["command": "stopAdvertise"])
        #expect(try await client.next("characteristicChanged").string("value") == "Ag==")
        client.send(["command": "disconnect", "connectionId": .string(link)])
        client.send(Sample.on(link, "writeCharacteristic", ["id": "late", "value": "Aw==", "withResponse": false]))
        _ = try await client.next("disconnected")
        await fixture.bridge.stop()
    }

    @Test func aScanTellsADeviceOnceASecondUnlessAskedForDuplicates() async throws {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        let client = try await fixture.client()
        host.send(Sample.advertise())
        client.send(["command": "startScan"])
        _ = try await client.next("advertisementFound")
        let first = ContinuousClock.now
        var reports = 1
        for _ in 1...2 {
            _ = try await client.next("advertisementFound")
            reports += 1
        }
        // It advertises ten times a second.
        #expect(Double(reports) <= first.duration(to: .now) / .seconds(1) + 2)
        client.send(["command": "startScan", "allowDuplicates": true])
        // Ten in less time than ten seconds, with much to spare for a busy machine.
        let start = ContinuousClock.now
        for _ in 1...11 { _ = try await client.next("advertisementFound") }
        #expect(start.duration(to: .now) < .seconds(8))
        await fixture.bridge.stop()
    }

    /// More than the bridge would keep for a client that does not wait.
    @Test func notificationsAreSentAsFastAsTheRadioTakesThemAndNoneIsLost() async throws {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        let client = try await fixture.client()
        host.send(Sample.advertise())
        let link = try await client.connectToSample()
        client.send(Sample.on(link, "setNotify", ["enable": true]))
        client.send(Sample.on(link, "writeCharacteristic", ["value": "AQ=="]))
        let central = try #require(try await host.next("characteristicWriteReceived").string("connectionId"))
        let count = 4 * Limits.queuedCommands
        for number in 0..<count {
            let value = JSONValue.string(Base64.encode([UInt8(number >> 8), UInt8(number & 0xFF)]))
            host.send(Sample.on(central, "sendNotification", ["value": value]))
        }
        for number in 0..<count {
            let changed = try await client.next("characteristicChanged")
            #expect(changed.string("value") == Base64.encode([UInt8(number >> 8), UInt8(number & 0xFF)]))
        }
        #expect(await host.events.take { $0.string("event") == "error" ? $0 : nil } == nil)
        await fixture.bridge.stop()
    }

    @Test func discoveryTellsTheServicesAskedForOnly() async throws {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        let client = try await fixture.client()
        host.send(Sample.advertise())
        let link = try await client.connectToSample()
        client.send(["command": "discoverServices", "connectionId": .string(link), "serviceUuids": ["180A"]])
        #expect(try await client.next("servicesDiscovered").array("services") == [])
        await fixture.bridge.stop()
    }

    /// A central could not tell the two apart.
    @Test func aSecondClientWithTheSameServiceOnOneAdapterIsRefused() async throws {
        let fixture = try await Fixture.start()
        let first = try await fixture.client()
        let second = try await fixture.client()
        first.send(Sample.advertise())
        first.send(["command": "startScan"])
        let scan = try await fixture.medium.addAdapter().scan(for: ScanFilter())
        for await event in scan.events {
            if case .discovered = event { break }
        }
        await scan.stop()
        var advertise = Sample.advertise()
        advertise["id"] = "a"
        second.send(advertise)
        let error = try await second.next("error") { $0.string("id") == "a" }
        #expect(error.string("code") == "busy" && error.string("advice") != nil)
        // Another service is welcome, and so is this one once the first has gone.
        second.send(Sample.advertise("180D"))
        first.close()
        try await eventually("the first is cleaned up") { fixture.bridge.clientCount == 1 }
        second.send(advertise)
        second.send(["command": "stopAdvertise"])
        try await second.events.expectNone(for: .milliseconds(300), "a refusal") { $0.string("event") == "error" }
        await fixture.bridge.stop()
    }
}

/// A radio whose scans the system refuses.
private struct RefusingRadio: Radio {
    let radio: SimulatedRadio

    init(_ radio: SimulatedRadio) { self.radio = radio }

    var clock: any MonotonicClock { radio.clock }
    var notificationScope: NotificationScope { radio.notificationScope }
    func adapterStatuses() -> AsyncStream<AdapterStatus> { radio.adapterStatuses() }

    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan {
        throw BluetoothError(.unauthorized, "this user may not scan")
    }

    func connect(
        to peer: PeerIdentifier, timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        try await radio.connect(to: peer, timeout: timeout)
    }

    func serve(
        _ services: [LocalService], advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> any PeripheralSession {
        try await radio.serve(services, advertising: advertisement)
    }
}
