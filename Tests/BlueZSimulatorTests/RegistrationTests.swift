// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import SimulatedRadio
import Testing

@testable import BlueZSimulator

@Suite("Registering a host", .timeLimit(.minutes(1)))
struct RegistrationTests {
    private static let longName = DBusValue.string("a name that is longer than a scan response")

    private static func error(_ body: () async throws -> Void) async -> String? {
        do {
            try await body()
            return nil
        } catch let error as DBusError {
            return "\((error.name ?? "").trimmingPrefix("org.bluez.Error.")): \(error.message)"
        } catch {
            return "\(error)"
        }
    }

    @Test func anApplicationIsAskedForItsObjectsBeforeItsCallIsAnswered() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus, characteristic: ["Handle": .uint16(0)])
        try await app.register()
        let set = try await app.characteristic.sets.wait { $0.name == "Handle" }
        #expect(set.value.asUInt16 ?? 0 > 0)
        let uuids = try await fixture.client.get(Fixture.adapterPath, "Adapter1", "UUIDs")?.asStrings
        #expect(uuids?.contains(Fixture.service.longDescription) == true)
        #expect(await Self.error { try await app.register() } == "AlreadyExists: Already Exists")
        withExtendedLifetime(fixture) {}
    }

    @Test func anApplicationWithoutObjectsIsRefused() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus)
        #expect(await Self.error { try await app.register(root: "/nothing") } == "Failed: No object received")
        withExtendedLifetime(fixture) {}
    }

    @Test(arguments: [
        ["Flags": DBusValue.strings(["write", "sing"])], ["Flags": .strings([String]())],
        ["Service": .objectPath("/elsewhere")], ["Service": .string("/app/service0")],
    ])
    func aCharacteristicThatIsNotWellFormedIsRefused(_ overrides: [String: DBusValue]) async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus, characteristic: overrides)
        #expect(await Self.error { try await app.register() } == "Failed: No valid service object found")
        withExtendedLifetime(fixture) {}
    }

    @Test(arguments: [
        ["UUID": DBusValue.string("nonsense"), "Primary": .bool(true)],
        ["UUID": .string("00001800-0000-1000-8000-00805f9b34fb"), "Primary": .bool(true)],
        ["UUID": .string("1801"), "Primary": .bool(true)], ["UUID": .string("180f")],
    ])
    func aServiceThatBluetoothdWouldNotTakeIsRefused(_ service: [String: DBusValue]) async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus, service: service)
        #expect(await Self.error { try await app.register() } == "Failed: Failed to create entry in database")
        withExtendedLifetime(fixture) {}
    }

    @Test func anAdvertisementIsReadAndGetsItsPower() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus, advertisement: ["TxPower": .int16(0)])
        try await app.register()
        try await app.advertise()
        let set = try await app.advertisement.sets.wait { $0.name == "TxPower" }
        #expect(set.value == .int16(7))
        let active = try await fixture.client.get(Fixture.adapterPath, "LEAdvertisingManager1", "ActiveInstances")
        #expect(active == .byte(1))
        #expect(await Self.error { try await app.advertise() } == "AlreadyExists: Already Exists")
        _ = try await Phone(fixture.medium.addAdapter())
        withExtendedLifetime(fixture) {}
    }

    @Test(arguments: [
        ["MaxInterval": nil as DBusValue?], ["MinInterval": .uint32(10)], ["MinInterval": .int16(100)],
        ["Type": .string("billboard")], ["ServiceUUIDs": .strings(["nonsense"])],
        ["Includes": .strings(["local-name"])], ["Timeout": .string("soon")],
    ])
    func anAdvertisementThatCannotBeParsedIsRefused(_ overrides: [String: DBusValue?]) async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus, advertisement: overrides)
        #expect(await Self.error { try await app.advertise() } == "Failed: Failed to parse advertisement.")
        let active = try await fixture.client.get(Fixture.adapterPath, "LEAdvertisingManager1", "ActiveInstances")
        #expect(active == .byte(0))
        withExtendedLifetime(fixture) {}
    }

    @Test(
        arguments: [
            (BehaviourProfile.bluez555, "Failed: Failed to parse advertisement."),
            (.bluez566, "Failed: Failed to register advertisement"), (.bluez582, nil),
        ] as [(BehaviourProfile, String?)])
    func dataThatDoesNotFitIsRefusedOrGoesWhereNobodyLegacySees(
        _ profile: BehaviourProfile, _ expected: String?
    ) async throws {
        let fixture = try await Fixture(profile: profile)
        let app = try await HostApp(
            fixture.bus, advertisement: ["LocalName": Self.longName])
        let error = await Self.error { try await app.advertise() }
        #expect(error == expected)
        withExtendedLifetime(fixture) {}
    }

    /// As `stack/refresh-too-long` of the lab sees it: 5.55 keeps what is on the air, 5.66 dies of it, and 5.82 goes
    /// where nobody legacy sees it.
    @Test(arguments: [(BehaviourProfile.bluez555, true), (.bluez582, false)])
    func anAdvertisementThatHasBecomeTooLongStaysOrGoes(
        _ profile: BehaviourProfile, _ isHeard: Bool
    ) async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(profile: profile, clock: clock)
        let app = try await HostApp(fixture.bus)
        try await app.advertise()
        try await app.announce(["LocalName": Self.longName])
        // Changes of what is on the air are made one after another.
        try await app.connection.export(
            AppObject("LEAdvertisement1", ["Type": .string("peripheral")], methods: [.init("Release")]), at: "/other")
        try await app.advertise(at: "/other")
        let scan = try await fixture.medium.addAdapter().scan(for: ScanFilter(services: [Fixture.service]))
        let heard = Task { await scan.events.reduce(0) { count, _ in count + 1 } }
        await clock.advance(by: .seconds(2))
        await scan.stop()
        #expect(await (heard.value > 0) == isHeard)
        withExtendedLifetime((fixture, app)) {}
    }

    @Test func anAdvertisementThatHasBecomeTooLongEndsBluetoothd566() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus)
        try await app.advertise()
        await #expect(throws: DBusError.self) { try await app.announce(["LocalName": Self.longName]) }
        #expect(await !fixture.simulator.isRunning)
        withExtendedLifetime((fixture, app)) {}
    }

    /// Of the one nobody hears again, and the other says so.
    @Test func whatIsUnregisteredWhileItIsRegistered() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus)
        let options = DBusValue.variantDictionary([String: DBusValue]())
        let answers = Log<String>()
        func send(_ interface: String, _ member: String, _ arguments: [DBusValue]) {
            app.connection.send(
                call: DBusCall("org.bluez", Fixture.adapterPath, "org.bluez." + interface, member, arguments)
            ) { result in
                switch result {
                case .success: answers.add(member)
                case .failure(let error): answers.add("\(member): \(error.message)")
                }
            }
        }
        // The application is asked behind both.
        send("GattManager1", "RegisterApplication", [.objectPath(HostApp.root), options])
        send("GattManager1", "UnregisterApplication", [.objectPath(HostApp.root)])
        send("LEAdvertisingManager1", "RegisterAdvertisement", [.objectPath(HostApp.advertisementPath), options])
        send("LEAdvertisingManager1", "UnregisterAdvertisement", [.objectPath(HostApp.advertisementPath)])
        _ = try await answers.wait { $0.hasPrefix("RegisterAdvertisement") }
        #expect(
            answers.all == [
                "UnregisterApplication", "UnregisterAdvertisement",
                "RegisterAdvertisement: Failed to complete registration",
            ])
        withExtendedLifetime((fixture, app)) {}
    }

    @Test func thereIsRoomForFiveAdvertisements() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus)
        for number in 1...6 {
            let path = try #require(ObjectPath(validating: "/more\(number)"))
            try await app.connection.export(
                AppObject("LEAdvertisement1", ["Type": .string("peripheral")], methods: [.init("Release")]), at: path)
            let error = await Self.error { try await app.advertise(at: path) }
            #expect(error == (number <= 5 ? nil : "NotPermitted: Maximum advertisements reached"))
        }
        withExtendedLifetime(fixture) {}
    }

    /// The path is one that nobody may call: the simulator would be thrown off the bus for it.
    @Test func aPathThatMustNotBeCalledIsAnsweredWithTheUsualError() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp(fixture.bus)
        let path: ObjectPath = "/org/freedesktop/DBus/Local"
        #expect(await Self.error { try await app.register(root: path) } == "Failed: No object received")
        #expect(
            await Self.error { try await app.advertise(at: path) } == "Failed: Failed to register advertisement")
        // It serves on, and nothing is left behind.
        try await app.register()
        try await app.advertise()
        let active = try await fixture.client.get(Fixture.adapterPath, "LEAdvertisingManager1", "ActiveInstances")
        #expect(active == .byte(1))
        withExtendedLifetime(fixture) {}
    }

    @Test func whatIsNotRegisteredCannotBeUnregistered() async throws {
        let fixture = try await Fixture()
        let client = fixture.client
        #expect(
            await client.error(
                Fixture.adapterPath, "LEAdvertisingManager1", "UnregisterAdvertisement", [.objectPath("/x")])
                == "DoesNotExist: Does Not Exist")
        #expect(
            await client.error(Fixture.adapterPath, "GattManager1", "UnregisterApplication", [.objectPath("/x")])
                == "DoesNotExist: Does Not Exist")
        withExtendedLifetime(fixture) {}
    }

    @Test func everythingOfAnApplicationGoesWithIt() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus)
        let start = fixture.client.signals.count
        await app.connection.close()
        try await fixture.client.property(
            Fixture.adapterPath, "LEAdvertisingManager1", "ActiveInstances", from: start
        ) { $0.asByte == 0 }
        let uuids = try await fixture.client.get(Fixture.adapterPath, "Adapter1", "UUIDs")?.asStrings
        #expect(uuids?.contains(Fixture.service.longDescription) == false)
        withExtendedLifetime(fixture) {}
    }

    @Test func anApplicationThatVanishesWhileItIsAskedLeavesNothing() async throws {
        let fixture = try await Fixture()
        let app = try await patiently { try await DBusConnection.open(fixture.bus.busAddress) }
        let slow = AppObject("GattService1", ["UUID": .string("180f"), "Primary": .bool(true)])
        try await app.export(slow, at: "/slow")
        try await app.sendWithoutReply(
            DBusCall(
                "org.bluez", Fixture.adapterPath, "org.bluez.GattManager1", "RegisterApplication",
                [.objectPath("/slow"), .variantDictionary([String: DBusValue]())]))
        await app.close()
        // Sixteen more would be refused if the dead one had stayed.
        let another = try await HostApp(fixture.bus)
        for _ in 0..<20 {
            try await another.register()
            try await another.call("GattManager1", "UnregisterApplication", [.objectPath(HostApp.root)])
        }
        withExtendedLifetime(fixture) {}
    }
}
