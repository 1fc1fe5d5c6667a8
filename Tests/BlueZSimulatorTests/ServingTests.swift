// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import SimulatedRadio
import Testing

@testable import BlueZSimulator

@Suite("Serving centrals", .timeLimit(.minutes(1)))
struct ServingTests {
    private static func att(_ body: () async throws -> Void) async -> ATTError? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? BluetoothError)?.att
        }
    }

    @Test func aWriteTellsTheDeviceTheLinkAndTheMTU() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus)
        let phone = try await Phone(fixture.medium.addAdapter())
        try await phone.write([1, 2, 3])
        let call = try await app.asked("WriteValue")
        #expect(call.arguments.first == .bytes([1, 2, 3]))
        let options = try #require(call.arguments.last?.asDictionary)
        #expect(Set(options.keys) == ["device", "link", "mtu"])
        #expect(options["device"]?.asObjectPath == Fixture.devicePath(phone.radio))
        #expect(options["mtu"] == .uint16(517))
        let device = try await fixture.client.objects()[Fixture.devicePath(phone.radio)]?["org.bluez.Device1"]
        #expect(device?["Connected"] == .bool(true))
        withExtendedLifetime(fixture) {}
    }

    @Test func theToldMTUCanOverstate() async throws {
        var profile = BehaviourProfile.bluez566
        profile.overstatedMTU = 517
        let fixture = try await Fixture(profile: profile)
        let app = try await HostApp.serving(fixture.bus)
        let radio = fixture.medium.addAdapter(configuration: AdapterConfiguration(maximumMTU: 185))
        let phone = try await Phone(radio)
        try await phone.write([1])
        #expect(try await app.asked("WriteValue").arguments.last?.asDictionary?["mtu"] == .uint16(517))
        withExtendedLifetime(fixture) {}
    }

    @Test(arguments: [
        ("org.bluez.Error.Failed", "0x81", 0x81 as UInt8), ("org.bluez.Error.Failed", "129", 0x81),
        ("org.bluez.Error.Failed", "no", 0x80), ("org.bluez.Error.Failed", "0x01", 0x0E),
        ("org.bluez.Error.NotSupported", "", 0x06), ("org.bluez.Error.NotAuthorized", "", 0x08),
        ("org.bluez.Error.InvalidValueLength", "", 0x0D), ("org.bluez.Error.InvalidOffset", "", 0x07),
        ("org.bluez.Error.NotPermitted", "", 0x03), ("org.bluez.Error.InProgress", "", 0xFE),
        ("org.example.Error.Whatever", "", 0x0E),
    ])
    func anErrorOfTheApplicationReachesTheCentralAsItsCode(_ name: String, _ text: String, _ code: UInt8) async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus)
        app.characteristic.onCall { $0.fail(name: name, message: text) }
        let phone = try await Phone(fixture.medium.addAdapter())
        let error = await Self.att { try await phone.write([1]) }
        #expect(error == ATTError(rawValue: code))
        withExtendedLifetime(fixture) {}
    }

    @Test func anApplicationThatDoesNotAnswerHasFiveSeconds() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let app = try await HostApp.serving(fixture.bus)
        let kept = Log<MethodCall>()
        app.characteristic.onCall { kept.add($0) }
        let radio = fixture.medium.addAdapter()
        let phone = try await clock.run { try await Phone(radio) }
        let begun = clock.now
        let write = Task { await Self.att { try await phone.write([1]) } }
        _ = try await app.asked("WriteValue")
        await clock.advance(by: .seconds(6))
        #expect(await write.value == .unlikelyError)
        #expect(begun.duration(to: clock.now) >= .seconds(5))
        // The late answer is nobody's: nothing happens, and the next request is served.
        for call in kept.all { call.reply() }
        app.characteristic.onCall { $0.reply() }
        try await phone.write([2])
        withExtendedLifetime(fixture) {}
    }

    /// As `stack/write-512` and `stack/long-writes` of the lab see it.
    @Test(arguments: [
        (BehaviourProfile.bluez555, 517, 512, true), (.bluez555, 23, 512, true), (.bluez566, 517, 511, false),
        (.bluez566, 517, 510, true), (.bluez566, 23, 509, false), (.bluez566, 23, 508, true),
        (.bluez582, 517, 512, true), (.bluez582, 23, 512, true),
    ])
    func from556To568TheLongestWritesAreRefused(
        _ profile: BehaviourProfile, _ mtu: Int, _ size: Int, _ passes: Bool
    ) async throws {
        let fixture = try await Fixture(profile: profile)
        let app = try await HostApp.serving(fixture.bus)
        let radio = fixture.medium.addAdapter(configuration: AdapterConfiguration(maximumMTU: mtu))
        let phone = try await Phone(radio)
        let error = await Self.att { try await phone.write([UInt8](repeating: 7, count: size)) }
        #expect(error == (passes ? nil : .invalidAttributeValueLength))
        #expect(app.characteristic.calls.all.count { $0.member == "WriteValue" } == (passes ? 1 : 0))
        withExtendedLifetime(fixture) {}
    }

    @Test func aReadIsSlicedByTheApplicationsOffset() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus)
        let whole = (0..<100).map { UInt8($0) }
        app.characteristic.onCall { call in
            let offset = Int(call.arguments.first?.asDictionary?["offset"]?.asUInt16 ?? 0)
            call.reply([.bytes(Array(whole.dropFirst(offset)))])
        }
        let radio = fixture.medium.addAdapter(configuration: AdapterConfiguration(maximumMTU: 23))
        let phone = try await Phone(radio)
        #expect(try await phone.connection.read(phone.characteristic) == whole)
        #expect(app.characteristic.calls.all.contains { $0.arguments.first?.asDictionary?["offset"] != nil })
        withExtendedLifetime(fixture) {}
    }

    @Test func everySubscriberHearsEveryNotificationCutToItsMTU() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus, characteristic: ["Notifying": .bool(false)])
        // Two adapters must be found, so the advertising may not stop at the first.
        let first = try await Phone(fixture.medium.addAdapter())
        try await app.call("LEAdvertisingManager1", "UnregisterAdvertisement", [.objectPath(HostApp.advertisementPath)])
        try await app.advertise()
        let small = fixture.medium.addAdapter(configuration: AdapterConfiguration(maximumMTU: 23))
        let second = try await Phone(small)
        let one = try await first.connection.subscribe(to: first.characteristic)
        let two = try await second.connection.subscribe(to: second.characteristic)
        _ = try await app.asked("StartNotify")
        let value = [UInt8](repeating: 9, count: 400)
        try await app.notify(value)
        var ones = one.values.makeAsyncIterator()
        var twos = two.values.makeAsyncIterator()
        #expect(await ones.next() == value)
        #expect(await twos.next()?.count == 20)
        try await app.invalidateValue()
        #expect(await ones.next() == [], "an invalidated Value is an empty notification")
        withExtendedLifetime(fixture) {}
    }

    /// BlueZ 297fa5cb3, 75fc53637.
    @Test func before560WhatIsNotifiedWithin10MillisecondsIsLostButTheFirst() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(profile: .bluez555, clock: clock)
        // Time goes on until there is a subscriber, and then stands still.
        let time = Task { while !Task.isCancelled { await clock.advance(by: .milliseconds(50)) } }
        let app = try await HostApp.serving(fixture.bus)
        let phone = try await Phone(fixture.medium.addAdapter())
        let subscription = try await phone.connection.subscribe(to: phone.characteristic)
        _ = try await app.asked("StartNotify")
        time.cancel()
        await time.value
        for value: UInt8 in 1...3 { try await app.notify([value]) }
        // All three have been read once this is answered.
        try await app.call("Adapter1", "GetDiscoveryFilters", [])
        var values = subscription.values.makeAsyncIterator()
        #expect(await values.next() == [1])
        await clock.advance(by: .milliseconds(10))
        try await app.notify([4])
        #expect(await values.next() == [4])
        withExtendedLifetime(fixture) {}
    }

    @Test func stopNotifyComesWithTheLastSubscriber() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus)
        let first = try await Phone(fixture.medium.addAdapter())
        try await app.call("LEAdvertisingManager1", "UnregisterAdvertisement", [.objectPath(HostApp.advertisementPath)])
        try await app.advertise()
        let second = try await Phone(fixture.medium.addAdapter())
        let one = try await first.connection.subscribe(to: first.characteristic)
        let two = try await second.connection.subscribe(to: second.characteristic)
        await one.cancel()
        try await first.write([1])
        _ = try await app.asked("WriteValue")
        #expect(!app.characteristic.calls.all.contains { $0.member == "StopNotify" })
        await second.connection.disconnect()
        _ = try await app.asked("StopNotify")
        await two.cancel()
        withExtendedLifetime(fixture) {}
    }

    @Test func withNotifyAcquiredTheApplicationLearnsWhoSubscribes() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus, characteristic: ["NotifyAcquired": .bool(false)])
        let phone = try await Phone(fixture.medium.addAdapter())
        let subscription = try await phone.connection.subscribe(to: phone.characteristic)
        let acquire = try await app.asked("AcquireNotify")
        #expect(acquire.arguments.first?.asDictionary?["device"]?.asObjectPath == Fixture.devicePath(phone.radio))
        _ = try await app.asked("StartNotify")
        await subscription.cancel()
        withExtendedLifetime(fixture) {}
    }

    @Test func anAcquireNotifyThatFailsEndsTheMatter() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus, characteristic: ["NotifyAcquired": .bool(false)])
        app.characteristic.onCall { call in
            if call.member == "AcquireNotify" {
                call.fail(name: "org.bluez.Error.Failed", message: "no")
            } else {
                call.reply()
            }
        }
        let phone = try await Phone(fixture.medium.addAdapter())
        let subscription = try await phone.connection.subscribe(to: phone.characteristic)
        _ = try await app.asked("AcquireNotify")
        try await phone.write([1])
        #expect(!app.characteristic.calls.all.contains { $0.member == "StartNotify" })
        await subscription.cancel()
        withExtendedLifetime(fixture) {}
    }

    /// As acquire_notify_reply does: it counts the subscription without looking whether it is still there.
    @Test func whoLeavesBeforeAcquireNotifyIsAnsweredIsNotTold() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus, characteristic: ["NotifyAcquired": .bool(false)])
        app.characteristic.onCall { call in
            if call.member != "AcquireNotify" { call.reply() }
        }
        let phone = try await Phone(fixture.medium.addAdapter())
        let subscription = try await phone.connection.subscribe(to: phone.characteristic)
        let acquire = try await app.asked("AcquireNotify")
        await subscription.cancel()
        // Its answer says that bluetoothd has seen the cancellation before.
        try await phone.write([1])
        acquire.fail(name: "org.bluez.Error.NotSupported", message: "no sockets")
        _ = try await app.asked("StartNotify")
        await phone.connection.disconnect()
        let before = app.characteristic.calls.count
        let other = try await Phone(fixture.medium.addAdapter())
        try await other.write([2])
        _ = try await app.asked("WriteValue", from: before)
        #expect(!app.characteristic.calls.all.contains { $0.member == "StopNotify" })
        withExtendedLifetime(fixture) {}
    }

    @Test func aConnectedCentralStopsTheAdvertisingUntilItGoes() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let app = try await HostApp.serving(fixture.bus)
        let radio = fixture.medium.addAdapter()
        let phone = try await clock.run { try await Phone(radio) }
        try await fixture.client.property(Fixture.devicePath(radio), "Device1", "ServicesResolved")
        let other = fixture.medium.addAdapter()
        let reports = Log<PeerIdentifier>()
        let scan = try await other.scan(for: ScanFilter(services: [Fixture.service]))
        let reader = Task {
            for await case .discovered(let found) in scan.events { reports.add(found.peer) }
        }
        await clock.advance(by: .milliseconds(200))
        #expect(reports.count == 0)
        await phone.connection.disconnect()
        try await fixture.client.property(Fixture.devicePath(radio), "Device1", "Connected") { $0.asBool == false }
        await clock.advance(by: .milliseconds(200))
        _ = try await reports.wait { _ in true }
        reader.cancel()
        withExtendedLifetime((fixture, app)) {}
    }

    /// What bluetoothd has no parser for is no reason to give the advertisement to the kernel again.
    @Test func onlyWhatBelongsToAnAdvertisementRefreshesIt() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let app = try await HostApp.serving(fixture.bus)
        let radio = fixture.medium.addAdapter()
        let phone = try await clock.run { try await Phone(radio) }
        try await fixture.client.property(Fixture.devicePath(radio), "Device1", "ServicesResolved")
        let scan = try await fixture.medium.addAdapter().scan(for: ScanFilter(services: [Fixture.service]))
        let reports = Log<PeerIdentifier>()
        let reader = Task {
            for await case .discovered(let found) in scan.events { reports.add(found.peer) }
        }
        try await app.announce(["Colour": .string("red")])
        await clock.advance(by: .milliseconds(200))
        #expect(reports.count == 0)
        try await app.announce(["Duration": .uint16(2)])
        _ = try await clock.run { try await reports.wait { _ in true } }
        reader.cancel()
        await phone.connection.disconnect()
        withExtendedLifetime((fixture, app)) {}
    }

    /// Its refusal is the write's, unlike AcquireNotify's.
    @Test func aRefusedAcquireWriteRefusesTheWrite() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(fixture.bus, characteristic: ["WriteAcquired": .bool(false)])
        let phone = try await Phone(fixture.medium.addAdapter())
        #expect(await Self.att { try await phone.write([1]) } == .requestNotSupported)
        #expect(!app.characteristic.calls.all.contains { $0.member == "WriteValue" })
        withExtendedLifetime(fixture) {}
    }

    @Test func writeWithoutResponseBesideWriteAcknowledgesEarly() async throws {
        let fixture = try await Fixture()
        let app = try await HostApp.serving(
            fixture.bus, characteristic: ["Flags": .strings(["write", "write-without-response"])])
        app.characteristic.onCall { $0.fail(name: "org.bluez.Error.Failed", message: "0x80") }
        let phone = try await Phone(fixture.medium.addAdapter())
        try await phone.write([1])
        _ = try await app.asked("WriteValue")
        withExtendedLifetime(fixture) {}
    }
}
