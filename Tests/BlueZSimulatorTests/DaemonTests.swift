// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZSimulator
@testable import SimulatedRadio

/// How the daemon ends and comes back, as `stack/killed-…` and `stack/terminated` of the lab see it.
@Suite("The daemon's life", .timeLimit(.minutes(1)))
struct DaemonTests {
    @Test func aRestartLosesEverything() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus)
        let owners = Log<String?>()
        _ = try await fixture.client.connection.watchOwner(of: "org.bluez") { owners.add($0) }
        let start = fixture.client.signals.count
        await fixture.simulator.crash()
        _ = try await owners.wait(from: 1) { $0 == nil }
        #expect(
            await fixture.client.error(Fixture.adapterPath, "Adapter1", "StartDiscovery")?
                .hasPrefix("org.freedesktop.DBus.Error.") == true)
        #expect(!fixture.client.signals.all.dropFirst(start).contains { $0.member == "InterfacesRemoved" })
        try await patiently { try await fixture.simulator.revive() }
        _ = try await owners.wait(from: 2) { $0 != nil }
        let active = try await fixture.client.get(
            Fixture.adapterPath, "LEAdvertisingManager1", "ActiveInstances")
        #expect(active == .byte(0))
        try await app.register()
        try await app.advertise()
        _ = try await Phone(fixture.medium.addAdapter())
    }

    /// A host with a phone that has subscribed.
    private static func host(_ fixture: Fixture) async throws -> (HostApp, Phone, Subscription) {
        let app = try await HostApp.serving(fixture.bus)
        let phone = try await Phone(fixture.medium.addAdapter())
        let subscription = try await phone.connection.subscribe(to: phone.characteristic)
        _ = try await app.asked("StartNotify")
        return (app, phone, subscription)
    }

    @Test func whoIsKilledTellsNobody() async throws {
        let fixture = try await Fixture()
        let (app, phone, _) = try await Self.host(fixture)
        let other = fixture.medium.addAdapter()
        let session = try await fixture.advertise(other)
        let path = try await fixture.client.discover(other)
        other.inject(.nextConnectHangs)
        let connecting = fixture.client.send(path, "Device1", "Connect")
        try await fixture.connecting(path)
        await fixture.simulator.crash()
        let error = try await connecting.wait { _ in true }
        #expect(error?.hasPrefix("org.freedesktop.DBus.Error.NoReply") == true)
        #expect(!app.characteristic.calls.all.contains { $0.member == "StopNotify" })
        #expect(!app.advertisement.calls.all.contains { $0.member == "Release" })
        #expect(fixture.medium.isConnected(phone.radio, to: try #require(fixture.simulator.radios["hci0"])))
        await session.stop()
    }

    @Test func whoIsTerminatedSaysSoAndTakesItsLinksDown() async throws {
        let fixture = try await Fixture()
        let (app, phone, _) = try await Self.host(fixture)
        await fixture.simulator.stop()
        _ = try await app.asked("StopNotify")
        _ = try await app.advertisement.calls.wait { $0.member == "Release" }
        #expect(await phone.connection.disconnection() == .remote)
        #expect(await !fixture.simulator.isRunning)
    }

    /// The phone's link of before: connected for the next daemon, too, and nobody answers on it.
    @Test func aPhonesLinkIsFoundByTheNextDaemonAndEndsAfterFourSeconds() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let app = try await HostApp.serving(fixture.bus)
        let radio = fixture.medium.addAdapter()
        let phone = try await clock.run { try await Phone(radio) }
        let path = Fixture.devicePath(radio)
        try await fixture.restart()
        let device = try #require(try await fixture.client.objects()[path]?["org.bluez.Device1"])
        #expect(device["Connected"] == .bool(true))
        #expect(device["ServicesResolved"] == .bool(false))
        try await app.register()
        try await app.advertise()
        let start = fixture.client.signals.count
        let writing = Task { try await phone.write([1]) }
        await clock.advance(by: .milliseconds(3_900))
        #expect(try await fixture.client.get(path, "Device1", "Connected") == .bool(true))
        await clock.advance(by: .milliseconds(100))
        try await fixture.client.property(path, "Device1", "Connected", from: start) { $0.asBool == false }
        await #expect(throws: BluetoothError.self) { try await writing.value }
        #expect(!app.characteristic.calls.all.contains { $0.member == "WriteValue" })
    }

    /// Our own: `Connect` answers success for what is of no use any more.
    @Test func ourLinkIsFoundByTheNextDaemonAndEndsAfterTwoSeconds() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let client = fixture.client
        let path = try await clock.run { try await client.discover(phone) }
        _ = try await clock.run { try await client.connect(path) }
        try await fixture.restart()
        let start = client.signals.count
        #expect(await client.error(path, "Device1", "Connect") == nil)
        #expect(try await client.get(path, "Device1", "ServicesResolved") == .bool(false))
        await clock.advance(by: .milliseconds(1_900))
        #expect(try await client.get(path, "Device1", "Connected") == .bool(true))
        await clock.advance(by: .milliseconds(100))
        try await client.property(path, "Device1", "Connected", from: start) { $0.asBool == false }
        let own = try #require(fixture.simulator.radios["hci0"])
        #expect(!fixture.medium.isConnected(own, to: phone))
        await session.stop()
    }

    @Test func aFoundLinkCanBeTakenDown() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let app = try await HostApp.serving(fixture.bus)
        let radio = fixture.medium.addAdapter()
        let phone = try await clock.run { try await Phone(radio) }
        try await fixture.restart()
        let client = fixture.client
        let path = Fixture.devicePath(radio)
        _ = try await clock.run { try await client.call(path, "Device1", "Disconnect") }
        // bluetoothd's own two seconds, and not the link's four.
        #expect(await phone.connection.disconnection() == .remote)
        #expect(clock.elapsed < .seconds(3))
        withExtendedLifetime(app) {}
    }

    @Test func itEndsWithItsBusAndCanBeStartedOnTheNext() async throws {
        let fixture = try await Fixture()
        let (app, phone, _) = try await Self.host(fixture)
        fixture.bus.stop()
        #expect(await phone.connection.disconnection() == .remote)
        #expect(await !fixture.simulator.isRunning)
        try await fixture.bus.restart()
        try await patiently { try await fixture.simulator.revive() }
        #expect(await fixture.simulator.isRunning)
        withExtendedLifetime(app) {}
    }

    @Test func whoIsStartedTwiceIsThereOnce() async throws {
        let fixture = try await Fixture()
        let simulator = fixture.simulator
        await simulator.crash()
        let starts = (0..<4).map { _ in Task { try await patiently { try await simulator.revive() } } }
        for start in starts { try await start.value }
        #expect(await simulator.isRunning)
        #expect(try await fixture.client.objects()[Fixture.adapterPath] != nil)
    }

    @Test func whoIsEndedWhileItStartsDoesNotComeBack() async throws {
        let fixture = try await Fixture()
        let simulator = fixture.simulator
        let error = try await patiently {
            let error = await Self.overtaken(simulator)
            if let error, error.code == .limitExceeded { throw error }
            return error
        }
        #expect(error?.code == .closed)
        #expect(await !simulator.isRunning)
        try await patiently { try await simulator.revive() }
        #expect(try await fixture.client.objects()[Fixture.adapterPath] != nil)
    }

    @BlueZSimulatorActor
    private static func overtaken(_ simulator: BlueZSimulator) async -> DBusError? {
        simulator.crash()
        let start = Task { () -> DBusError? in
            do throws(DBusError) {
                try await simulator.revive()
                return nil
            } catch {
                return error
            }
        }
        // Both begin here, one behind the other: the start waits for the bus by then.
        let end = Task { simulator.crash() }
        await end.value
        return await start.value
    }
}
