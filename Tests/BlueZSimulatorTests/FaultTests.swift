// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import SimulatedRadio
import Testing

@testable import BlueZSimulator

/// What the real stack was seen to do when something goes wrong.
@Suite("Faults", .timeLimit(.minutes(1)))
struct FaultTests {
    @Test func powerOffEndsLinksFirstAndThenSaysSo() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus)
        let phone = try await Phone(fixture.medium.addAdapter())
        let path = Fixture.devicePath(phone.radio)
        let subscription = try await phone.connection.subscribe(to: phone.characteristic)
        _ = try await app.asked("StartNotify")
        try await fixture.client.property(path, "Device1", "ServicesResolved") { $0.asBool == true }
        let start = fixture.client.signals.count
        try await fixture.client.set(Fixture.adapterPath, "Adapter1", "Powered", .bool(false))
        _ = try await app.asked("StopNotify")
        #expect(await phone.connection.disconnection() != .local)
        try await fixture.client.property(Fixture.adapterPath, "Adapter1", "Powered", from: start)
        let later = fixture.client.signals.all.dropFirst(start)
        let down = try #require(later.firstIndex { $0.changed(path, "Device1", "Connected") == .bool(false) })
        let unresolved = later.firstIndex { $0.changed(path, "Device1", "ServicesResolved") == .bool(false) }
        let off = try #require(
            later.firstIndex { $0.changed(Fixture.adapterPath, "Adapter1", "Powered") == .bool(false) })
        #expect(down < off)
        #expect(unresolved != nil)
        #expect(later.contains { $0.member == "InterfacesRemoved" && $0.body.first?.asObjectPath == path })
        await subscription.cancel()
    }

    @Test func advertisingIsLostWithThePowerAndNobodyIsTold() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let app = try await HostApp.serving(fixture.bus)
        let client = fixture.client
        try await client.set(Fixture.adapterPath, "Adapter1", "Powered", .bool(false))
        try await client.set(Fixture.adapterPath, "Adapter1", "Powered", .bool(true))
        let active = try await client.get(Fixture.adapterPath, "LEAdvertisingManager1", "ActiveInstances")
        #expect(active == .byte(1))
        let radio = fixture.medium.addAdapter()
        let scan = try await radio.scan(for: ScanFilter(services: [Fixture.service]))
        let reports = Log<PeerIdentifier>()
        let reader = Task {
            for await case .discovered(let found) in scan.events { reports.add(found.peer) }
        }
        await clock.advance(by: .seconds(2))
        #expect(reports.count == 0)
        #expect(!app.advertisement.calls.all.contains { $0.member == "Release" })
        try await app.call("LEAdvertisingManager1", "UnregisterAdvertisement", [.objectPath(HostApp.advertisementPath)])
        try await app.advertise()
        await clock.advance(by: .seconds(2))
        _ = try await reports.wait { _ in true }
        reader.cancel()
        // The services have outlived the power cycle.
        let phone = try await clock.run { try await Phone(radio) }
        try await phone.write([1])
        withExtendedLifetime(fixture) {}
    }

    @Test func anAdapterCanBePulledOutAndPutBack() async throws {
        let fixture = try await Fixture(adapters: 2)
        let app = try await HostApp.serving(fixture.bus)
        await fixture.simulator.unplug("hci0")
        try await fixture.client.vanished(Fixture.adapterPath)
        let objects = try await fixture.client.objects()
        #expect(objects["/org/bluez/hci0"] == nil)
        #expect(objects["/org/bluez/hci1"] != nil)
        let start = fixture.client.signals.count
        await fixture.simulator.plug("hci0")
        try await fixture.client.appeared(Fixture.adapterPath, from: start)
        try await app.register()
        try await app.advertise()
    }

    @Test func aSecondDaemonOnOneBusIsRefused() async throws {
        let fixture = try await Fixture()
        let medium = fixture.medium
        let error = await #expect(throws: DBusError.self) {
            _ = try await patiently { try await BlueZSimulator.start(on: fixture.bus.busAddress, medium: medium) }
        }
        #expect(error?.code == .addressInUse)
    }

    @Test func theIntrospectionDiffersByVersion() async throws {
        for profile in BehaviourProfile.all {
            let fixture = try await Fixture(profile: profile)
            let version = try? await fixture.client.get(Fixture.adapterPath, "Adapter1", "Version")
            #expect((version != nil) == (profile.version >= .init(5, 71)))
            let xml = try await fixture.client.call(
                Fixture.adapterPath, "org.freedesktop.DBus.Introspectable", "Introspect"
            ).first?.asString
            #expect(xml?.contains("org.bluez.GattManager1") == true)
        }
    }

    @Test func nonsenseFromClientsIsAnsweredAndChangesNothing() async throws {
        let fixture = try await Fixture()
        let client = fixture.client
        let calls: [(String, String, [DBusValue])] = [
            ("Adapter1", "RemoveDevice", [.string("no path")]), ("Adapter1", "NoSuchMethod", []),
            ("GattManager1", "RegisterApplication", [.objectPath("/")]),
            ("LEAdvertisingManager1", "RegisterAdvertisement", [.uint32(1), .bool(true)]),
            ("Adapter1", "SetDiscoveryFilter", [.strings(["a"])]), ("NoInterface1", "Nothing", []),
        ]
        for (interface, member, body) in calls {
            #expect(await client.error(Fixture.adapterPath, interface, member, body) != nil)
        }
        try await client.adapter("StartDiscovery")
    }
}
