// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import SimulatedRadio
import Testing

@testable import BlueZSimulator

@Suite("Discovery", .timeLimit(.minutes(1)))
struct DiscoveryTests {
    private static func filter(_ values: [String: DBusValue]) -> [DBusValue] { [.variantDictionary(values)] }

    @Test func aFoundDeviceAppearsWithWhatItAdvertises() async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        fixture.medium.setRSSI(-42, between: try #require(fixture.simulator.radios["hci0"]), and: phone)
        let session = try await fixture.advertise(phone, manufacturerData: [0x1234: [1, 2]])
        let path = try await fixture.client.discover(phone)
        let device = try #require(try await fixture.client.objects()[path]?["org.bluez.Device1"])
        #expect(device["Address"] == .string(phone.address.description))
        #expect(device["Name"] == .string("phone"))
        #expect(device["RSSI"] == .int16(-42))
        #expect(device["UUIDs"] == .strings([Fixture.service.longDescription]))
        #expect(device["Connected"] == .bool(false))
        #expect(device["ManufacturerData"]?.asEntries?.first?.value.asBytes == [1, 2])
        #expect(device["Adapter"] == .objectPath(Fixture.adapterPath))
        await session.stop()
    }

    @Test func aSecondStartIsInProgressAndAStopWithoutStartFails() async throws {
        let fixture = try await Fixture()
        let client = fixture.client
        #expect(
            await client.error(Fixture.adapterPath, "Adapter1", "StopDiscovery") == "Failed: No discovery started")
        try await client.adapter("StartDiscovery")
        #expect(
            await client.error(Fixture.adapterPath, "Adapter1", "StartDiscovery")
                == "InProgress: Operation already in progress")
        try await client.adapter("StopDiscovery")
    }

    @Test func withoutPowerNothingStarts() async throws {
        let fixture = try await Fixture()
        let client = fixture.client
        try await client.set(Fixture.adapterPath, "Adapter1", "Powered", .bool(false))
        #expect(
            await client.error(Fixture.adapterPath, "Adapter1", "StartDiscovery") == "NotReady: Resource Not Ready")
        #expect(
            await client.error(
                Fixture.adapterPath, "Adapter1", "SetDiscoveryFilter", Self.filter(["RSSI": .int16(-60)]))
                == "NotReady: Resource Not Ready")
    }

    @Test(arguments: [
        ["RSSI": DBusValue.int16(-60), "Pathloss": .uint16(10)], ["RSSI": .int16(21)], ["RSSI": .int16(-128)],
        ["RSSI": .uint16(1)], ["Transport": .string("zigbee")], ["UUIDs": .strings(["no uuid"])],
        ["Nonsense": .bool(true)],
    ])
    func aFilterThatMakesNoSenseIsRefused(_ values: [String: DBusValue]) async throws {
        let fixture = try await Fixture()
        #expect(
            await fixture.client.error(
                Fixture.adapterPath, "Adapter1", "SetDiscoveryFilter", Self.filter(values))
                == "InvalidArguments: Invalid arguments in method call")
    }

    @Test func readingsAreInvalidatedWhenTheScanEnds() async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let path = try await fixture.client.discover(phone)
        try await fixture.client.adapter("StopDiscovery")
        _ = try await fixture.client.signals.wait { $0.invalidates(path, "Device1", "RSSI") }
        let device = try #require(try await fixture.client.objects()[path]?["org.bluez.Device1"])
        #expect(device["RSSI"] == nil, "a cached device is listed, without a reading")
        await session.stop()
    }

    @Test func smallStepsAreSignalledOnlyWithAProximityFilter() async throws {
        let fixture = try await Fixture()
        let own = try #require(fixture.simulator.radios["hci0"])
        let phone = fixture.medium.addAdapter()
        fixture.medium.setRSSI(-50, between: own, and: phone)
        let session = try await fixture.advertise(phone)
        let path = try await fixture.client.discover(phone)
        fixture.medium.setRSSI(-57, between: own, and: phone)
        // Something else of the device changes after the small step; when that is signalled, the step was not.
        let other = try await phone.serve(
            [],
            advertising: AdvertisementRequest(
                localName: "renamed", serviceUUIDs: [Fixture.service],
                interval: .milliseconds(20) ... .milliseconds(20)))
        try await fixture.client.property(path, "Device1", "Name") { $0.asString == "renamed" }
        let changes = fixture.client.signals.all.compactMap { $0.changed(path, "Device1", "RSSI") }
        #expect(changes.isEmpty)
        try await fixture.client.adapter("SetDiscoveryFilter", Self.filter(["RSSI": .int16(-127)]))
        try await fixture.client.property(path, "Device1", "RSSI") { $0.asInt16 == -57 }
        await other.stop()
        await session.stop()
    }

    @Test func theFiltersOfAllClientsAreMerged() async throws {
        let fixture = try await Fixture()
        let stranger = fixture.medium.addAdapter()
        let session = try await fixture.advertise(stranger, services: [0x180F])
        try await fixture.client.adapter(
            "SetDiscoveryFilter", Self.filter(["UUIDs": .strings([Fixture.service.longDescription])]))
        let other = try await Client(fixture.bus)
        try await other.adapter("SetDiscoveryFilter", Self.filter(["UUIDs": .strings(["180f"])]))
        try await fixture.client.adapter("StartDiscovery")
        try await other.adapter("StartDiscovery")
        // The first client asked for another service, and hears of this device all the same.
        try await fixture.client.appeared(Fixture.devicePath(stranger))
        await session.stop()
    }

    @Test func discoveryEndsWithItsClient() async throws {
        let fixture = try await Fixture()
        let other = try await Client(fixture.bus)
        try await other.adapter("StartDiscovery")
        try await fixture.client.property(Fixture.adapterPath, "Adapter1", "Discovering") { $0.asBool == true }
        await other.connection.close()
        try await fixture.client.property(Fixture.adapterPath, "Adapter1", "Discovering") { $0.asBool == false }
    }

    @Test func aStopDirectlyBehindAStartIsTooEarly() async throws {
        let fixture = try await Fixture()
        let start = fixture.client.send(Fixture.adapterPath, "Adapter1", "StartDiscovery")
        let stop = fixture.client.send(Fixture.adapterPath, "Adapter1", "StopDiscovery")
        #expect(try await start.wait { _ in true } == nil)
        #expect(try await stop.wait { _ in true } == "InProgress: Operation already in progress")
        #expect(try await fixture.client.get(Fixture.adapterPath, "Adapter1", "Discovering") == .bool(true))
        try await fixture.client.adapter("StopDiscovery")
        #expect(try await fixture.client.get(Fixture.adapterPath, "Adapter1", "Discovering") == .bool(false))
    }

    /// As in src/adapter.c: who has the answer has yet to hear what came of it.
    @Test func theAnswersComeBeforeTheSignals() async throws {
        let fixture = try await Fixture()
        let client = fixture.client
        for (member, isDiscovering) in [("StartDiscovery", true), ("StopDiscovery", false)] {
            let told = Log<Int>()
            client.connection.send(call: DBusCall("org.bluez", Fixture.adapterPath, "org.bluez.Adapter1", member)) {
                _ in told.add(client.signals.count)
            }
            let before = try await told.wait { _ in true }
            try await client.property(Fixture.adapterPath, "Adapter1", "Discovering", from: before) {
                $0 == .bool(isDiscovering)
            }
        }
    }

    /// There is one place for who waits: the first of two is never answered, and cannot stop.
    @Test func aStartThatIsOvertakenIsNeverAnswered() async throws {
        let fixture = try await Fixture()
        let answers = Log<String>()
        await Self.startTogether(fixture.simulator, answers)
        #expect(try await answers.wait { _ in true } == "second: started")
        let stopped = Log<String>()
        await Self.stop(fixture.simulator, "first", stopped)
        #expect(try await stopped.wait { _ in true } == "first: Operation already in progress")
        #expect(answers.count == 1)
    }

    @BlueZSimulatorActor
    private static func startTogether(_ simulator: BlueZSimulator, _ answers: Log<String>) {
        for sender in ["first", "second"] {
            simulator.adapters["hci0"]?.discovery.start(call(sender, "StartDiscovery", answers))
        }
    }

    @BlueZSimulatorActor
    private static func stop(_ simulator: BlueZSimulator, _ sender: String, _ answers: Log<String>) {
        simulator.adapters["hci0"]?.discovery.stop(call(sender, "StopDiscovery", answers))
    }

    private static func call(_ sender: String, _ member: String, _ answers: Log<String>) -> MethodCall {
        MethodCall(
            sender: sender, path: Fixture.adapterPath, interface: "org.bluez.Adapter1", member: member, arguments: []
        ) { result in
            switch result {
            case .success: answers.add("\(sender): started")
            case .failure(let error): answers.add("\(sender): \(error.message)")
            }
        }
    }

    /// `stack/filter-outlives-discovery`
    @Test func theFilterOutlivesTheSession() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let client = fixture.client
        try await client.adapter("SetDiscoveryFilter", Self.filter(["UUIDs": .strings(["180f"])]))
        try await client.adapter("StartDiscovery")
        try await client.adapter("StopDiscovery")
        try await client.adapter("StartDiscovery")
        await clock.advance(by: .seconds(1))
        #expect(try await client.objects()[Fixture.devicePath(phone)] == nil)
        try await client.adapter("SetDiscoveryFilter", Self.filter([:]))
        _ = try await clock.run { try await client.appeared(Fixture.devicePath(phone)) }
        await session.stop()
    }

    @Test func aTemporaryDeviceVanishes30SecondsAfterItWasLastHeard() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let path = Fixture.devicePath(phone)
        try await fixture.client.adapter("StartDiscovery")
        await clock.advance(by: .milliseconds(100))
        try await fixture.client.appeared(path)
        await session.stop()
        try await fixture.client.adapter("StopDiscovery")
        await clock.advance(by: .seconds(29))
        #expect(try await fixture.client.objects()[path] != nil)
        await clock.advance(by: .seconds(2))
        try await fixture.client.vanished(path)
        let error = await fixture.client.error(path, "Device1", "Connect")
        #expect(error?.hasPrefix("org.freedesktop.DBus.Error.Unknown") == true)
    }

    @Test func aHostileClientCannotGrowTheListOfFilters() async throws {
        let fixture = try await Fixture()
        let uuids = (0..<200).map { String(String(0x1_0000 + $0, radix: 16).suffix(4)) }
        #expect(
            await fixture.client.error(
                Fixture.adapterPath, "Adapter1", "SetDiscoveryFilter", Self.filter(["UUIDs": .strings(uuids)]))
                == "InvalidArguments: Invalid arguments in method call")
    }
}
