// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import SimulatedRadio
import Testing

@testable import BlueZSimulator

@Suite("Using a remote device", .timeLimit(.minutes(1)))
struct RemoteDeviceTests {
    /// Answers every request of a phone's session, reads with this value.
    private static func answer(
        _ session: any PeripheralSession, reads value: [UInt8] = [], writes response: RequestResponse? = .accept
    ) -> (Task<Void, Never>, Log<WriteRequest>) {
        let writes = Log<WriteRequest>()
        let task = Task {
            for await event in session.events {
                switch event {
                case .read(let request):
                    await session.respond(to: request.id, with: .value(Array(value.dropFirst(request.offset))))
                case .write(let request):
                    writes.add(request)
                    if let response { await session.respond(to: request.id, with: response) }
                default: break
                }
            }
        }
        return (task, writes)
    }

    private static let none: DBusValue = .variantDictionary([String: DBusValue]())

    @Test func connectExportsTheServicesAndDisconnectTakesTwoSeconds() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(profile: .bluez587, clock: clock)
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let path = Fixture.devicePath(phone)
        try await fixture.client.adapter("StartDiscovery")
        await clock.advance(by: .milliseconds(100))
        try await fixture.client.appeared(path)
        let client = fixture.client
        let connecting = Task { try await client.connect(path) }
        try await client.property(path, "Device1", "Connected") { $0.asBool == true }
        let characteristic = try await clock.run { try await connecting.value }
        let flags = try await client.get(characteristic, "GattCharacteristic1", "Flags")?.asStrings
        #expect(flags == ["read", "write", "notify"])
        #expect(try await client.get(characteristic, "GattCharacteristic1", "MTU") == .uint16(517))
        let disconnecting = Task { try await client.call(path, "Device1", "Disconnect") }
        await clock.waitForSleepers(atLeast: 1)
        await clock.advance(by: .milliseconds(1_900))
        #expect(try await client.get(path, "Device1", "Connected") == .bool(true))
        await clock.advance(by: .milliseconds(200))
        _ = try await disconnecting.value
        let reason = try await client.signals.wait { $0.member == "Disconnected" && $0.path == path }
        #expect(reason.body.first?.asString == "org.bluez.Reason.Local")
        try await client.property(path, "Device1", "ServicesResolved") { $0.asBool == false }
        #expect(try await client.objects()[characteristic] != nil, "the GATT cache keeps the objects")
        await session.stop()
    }

    @Test func connectingTwiceIsFineAndAnUnreachableDeviceFailsAfterItsTime() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let path = Fixture.devicePath(phone)
        let client = fixture.client
        try await client.adapter("StartDiscovery")
        await clock.advance(by: .milliseconds(100))
        try await client.appeared(path)
        phone.inject(.nextConnectHangs)
        let failing = Task { await client.error(path, "Device1", "Connect") }
        try await fixture.connecting(path)
        #expect(await client.error(path, "Device1", "Connect") == "Failed: Operation already in progress")
        await clock.advance(by: .seconds(21))
        #expect(await failing.value == "Failed: le-connection-abort-by-local")
        try await client.call(path, "Device1", "Connect")
        try await client.call(path, "Device1", "Connect")
        await session.stop()
    }

    @Test(arguments: [(BehaviourProfile.bluez555, "Failed: Cancelled"), (.bluez566, "Failed: br-connection-canceled")])
    func disconnectCancelsAConnectThatIsUnderWay(_ profile: BehaviourProfile, _ text: String) async throws {
        let fixture = try await Fixture(profile: profile)
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let path = try await fixture.client.discover(phone)
        phone.inject(.nextConnectHangs)
        let client = fixture.client
        let connecting = Task { await client.error(path, "Device1", "Connect") }
        try await fixture.connecting(path)
        try await client.call(path, "Device1", "Disconnect")
        #expect(await connecting.value == text)
        await session.stop()
    }

    /// device_free in src/device.c lets go of the call.
    @Test func aConnectWhoseDeviceIsRemovedIsNeverAnswered() async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let path = try await fixture.client.discover(phone)
        phone.inject(.nextConnectHangs)
        let connecting = fixture.client.send(path, "Device1", "Connect")
        try await fixture.connecting(path)
        try await fixture.client.adapter("RemoveDevice", [.objectPath(path)])
        // It would have come before.
        #expect(connecting.count == 0)
        await session.stop()
    }

    /// What waits for the peer fails as if it had refused, and a session that had not begun is gone.
    @Test func aLostLinkFailsWhatWaits() async throws {
        let clock = ManualClock()
        let fixture = try await Fixture(clock: clock)
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let client = fixture.client
        let path = try await clock.run { try await client.discover(phone) }
        let characteristic = try await clock.run { try await client.connect(path) }
        fixture.medium.conditions.latency = .seconds(10)
        let start = client.send(characteristic, "GattCharacteristic1", "StartNotify")
        let again = client.send(characteristic, "GattCharacteristic1", "StartNotify")
        #expect(try await again.wait { _ in true } == nil)
        let own = try #require(fixture.simulator.radios["hci0"])
        fixture.medium.drop(between: own, and: phone)
        #expect(try await start.wait { _ in true } == "Failed: Operation failed with ATT error: 0x0e")
        fixture.medium.conditions.latency = .zero
        _ = try await clock.run { try await client.connect(path) }
        #expect(await client.error(characteristic, "GattCharacteristic1", "StartNotify") == nil)
        #expect(try await client.get(characteristic, "GattCharacteristic1", "Notifying") == .bool(true))
        await session.stop()
    }

    /// Both attempts wait: the first is called off, the second gets the link. Where the device has been forgotten, the
    /// kernel has to hear it first.
    @Test(arguments: [false, true])
    func aConnectDirectlyBehindACalledOffOneIsItsOwn(_ isForgotten: Bool) async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let client = fixture.client
        let path = try await client.discover(phone)
        let own = try #require(fixture.simulator.radios["hci0"])
        fixture.medium.setInRange(false, between: own, and: phone)
        if isForgotten { own.forget(phone.peerIdentifier) }
        let first = client.send(path, "Device1", "Connect")
        try await fixture.connecting(path)
        let off = client.send(path, "Device1", "Disconnect")
        let second = client.send(path, "Device1", "Connect")
        #expect(try await first.wait { _ in true } == "Failed: br-connection-canceled")
        #expect(try await off.wait { _ in true } == nil)
        fixture.medium.setInRange(true, between: own, and: phone)
        #expect(try await second.wait { _ in true } == nil)
        await session.stop()
    }

    @Test func aReadIsAlsoSignalledAsAValue() async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let (task, _) = Self.answer(session, reads: [4, 5, 6])
        let device = try await fixture.client.discover(phone)
        let characteristic = try await fixture.client.connect(device)
        let value = try await fixture.client.call(characteristic, "GattCharacteristic1", "ReadValue", [Self.none])
        #expect(value == [.bytes([4, 5, 6])])
        try await fixture.client.property(characteristic, "GattCharacteristic1", "Value") { $0 == .bytes([4, 5, 6]) }
        let rest = try await fixture.client.call(
            characteristic, "GattCharacteristic1", "ReadValue", [.variantDictionary(["offset": .uint16(2)])])
        #expect(rest == [.bytes([6])])
        task.cancel()
        await session.stop()
    }

    @Test func aSecondWriteIsInProgress() async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let (task, writes) = Self.answer(session, writes: nil)
        let device = try await fixture.client.discover(phone)
        let characteristic = try await fixture.client.connect(device)
        let client = fixture.client
        let first = Task {
            try await client.call(characteristic, "GattCharacteristic1", "WriteValue", [.bytes([1]), Self.none])
        }
        let request = try await writes.wait { _ in true }
        #expect(
            await client.error(characteristic, "GattCharacteristic1", "WriteValue", [.bytes([2]), Self.none])
                == "InProgress: In Progress")
        await session.respond(to: request.id, with: .accept)
        _ = try await first.value
        task.cancel()
        await session.stop()
    }

    @Test(arguments: [
        (ATTError.application, "Failed: Operation failed with ATT error: 0x80"),
        (.writeNotPermitted, "NotPermitted: Write not permitted"),
        (.insufficientAuthentication, "NotPermitted: Not paired"),
        (.invalidAttributeValueLength, "InvalidArguments: Invalid Length"),
        (.insufficientAuthorization, "NotAuthorized: Operation Not Authorized"),
        (.requestNotSupported, "NotSupported: Operation is not supported"),
    ])
    func anATTErrorHasItsDBusName(_ error: ATTError, _ text: String) async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let (task, _) = Self.answer(session, writes: .refuse(error))
        let device = try await fixture.client.discover(phone)
        let characteristic = try await fixture.client.connect(device)
        #expect(
            await fixture.client.error(
                characteristic, "GattCharacteristic1", "WriteValue", [.bytes([2]), Self.none]) == text)
        task.cancel()
        await session.stop()
    }

    @Test func eachLocalSubscriberMakesOneSignalPerNotification() async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let device = try await fixture.client.discover(phone)
        let characteristic = try await fixture.client.connect(device)
        let other = try await Client(fixture.bus)
        #expect(
            await fixture.client.error(characteristic, "GattCharacteristic1", "StopNotify")
                == "Failed: No notify session started")
        try await fixture.client.call(characteristic, "GattCharacteristic1", "StartNotify")
        try await fixture.client.call(characteristic, "GattCharacteristic1", "StartNotify")
        try await other.call(characteristic, "GattCharacteristic1", "StartNotify")
        try await fixture.client.property(characteristic, "GattCharacteristic1", "Notifying") { $0.asBool == true }
        let position = LocalCharacteristicID(service: 0, characteristic: 0)
        try await session.notify([1], on: position, to: nil)
        try await session.notify([2], on: position, to: nil)
        try await fixture.client.property(characteristic, "GattCharacteristic1", "Value") { $0 == .bytes([2]) }
        let values = fixture.client.signals.all.compactMap {
            $0.changed(characteristic, "GattCharacteristic1", "Value")
        }
        #expect(values.filter { $0 == .bytes([1]) }.count == 2)
        await other.connection.close()
        try await fixture.client.call(characteristic, "GattCharacteristic1", "StopNotify")
        try await fixture.client.property(characteristic, "GattCharacteristic1", "Notifying") { $0.asBool == false }
        await session.stop()
    }

    @Test func aNotificationCanOvertakeTheAnswerToStartNotify() async throws {
        var profile = BehaviourProfile.bluez566
        profile.notifiesBeforeStartNotifyAnswer = true
        let fixture = try await Fixture(profile: profile)
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let device = try await fixture.client.discover(phone)
        let characteristic = try await fixture.client.connect(device)
        let order = Log<String>()
        let events = session.events
        let subscribed = Task {
            for await event in events {
                if case .subscribed(let position, _, _) = event {
                    try await session.notify([7], on: position, to: nil)
                    return
                }
            }
        }
        _ = try await fixture.client.connection.addMatch(
            .propertiesChanged(sender: "org.bluez", path: characteristic)
        ) { message in
            if message.changed(characteristic, "GattCharacteristic1", "Value") != nil { order.add("value") }
        }
        fixture.client.connection.send(
            call: DBusCall("org.bluez", characteristic, "org.bluez.GattCharacteristic1", "StartNotify")
        ) { _ in order.add("answer") }
        _ = try await order.wait { $0 == "answer" }
        try await subscribed.value
        #expect(order.all == ["value", "answer"])
        await session.stop()
    }

    @Test func servicesResolvedCanComeBeforeTheObjects() async throws {
        var profile = BehaviourProfile.bluez566
        profile.resolvesBeforeExporting = true
        let fixture = try await Fixture(profile: profile)
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let path = try await fixture.client.discover(phone)
        try await fixture.client.call(path, "Device1", "Connect")
        _ = try await fixture.client.signals.wait {
            $0.member == "InterfacesAdded"
                && $0.body.last?.asInterfaces?["org.bluez.GattCharacteristic1"] != nil
        }
        let all = fixture.client.signals.all
        let resolved = try #require(all.firstIndex { $0.changed(path, "Device1", "ServicesResolved") == .bool(true) })
        let exported = try #require(
            all.firstIndex {
                $0.member == "InterfacesAdded" && $0.body.last?.asInterfaces?["org.bluez.GattService1"] != nil
            })
        #expect(resolved < exported)
        await session.stop()
    }

    @Test func removingAConnectedDeviceDisconnectsItFirst() async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let path = try await fixture.client.discover(phone)
        try await fixture.client.adapter("StopDiscovery")
        _ = try await fixture.client.connect(path)
        try await fixture.client.call(Fixture.adapterPath, "Adapter1", "RemoveDevice", [.objectPath(path)])
        try await fixture.client.vanished(path)
        #expect(
            await fixture.client.error(Fixture.adapterPath, "Adapter1", "RemoveDevice", [.objectPath(path)])
                == "DoesNotExist: Does Not Exist")
        await session.stop()
    }

    @Test func pairingFails() async throws {
        let fixture = try await Fixture()
        let phone = fixture.medium.addAdapter()
        let session = try await fixture.advertise(phone)
        let path = try await fixture.client.discover(phone)
        #expect(
            await fixture.client.error(path, "Device1", "Pair") == "AuthenticationFailed: Authentication Failed")
        await session.stop()
    }
}
