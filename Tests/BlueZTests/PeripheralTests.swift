// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

extension OnABus {
    @Suite(.timeLimit(.minutes(1))) struct PeripheralTests {
        private static func peer(_ number: Int) -> PeerIdentifier { PeerIdentifier(FakeBlueZ.device(number).string) }

        @Test func servesAfterBluetoothdHasReadEverything() async throws {
            let bench = try await HostBench()
            var events = bench.session.events.makeAsyncIterator()
            #expect(await events.next() == .serving(advertising: true, degraded: nil))
            #expect(bench.fake.calls == ["RegisterApplication", "RegisterAdvertisement"])
            await bench.session.stop()
            await bench.session.stop()
            #expect(Set(bench.fake.calls.suffix(2)) == ["UnregisterApplication", "UnregisterAdvertisement"])
            #expect(await events.next() == nil)
        }

        /// What follows bluetoothd was refused once: it is asked for again before anything is believed.
        @Test(arguments: ["GetNameOwner", "AddMatch"])
        func aRadioThatCouldNotFollowBluetoothdAsksAgain(member: String) async throws {
            let fake = try await FakeBlueZ()
            try await fake.refuse([member])
            HostBench.callBack(fake)
            let radio = fake.radio()
            let error = await #expect(throws: BluetoothError.self) {
                try await radio.serve(HostBench.services, advertising: nil)
            }
            #expect(error?.code == .unauthorized)
            try await fake.refuse([])
            let session = try await radio.serve(HostBench.services, advertising: nil)
            var events = session.events.makeAsyncIterator()
            #expect(await events.next() == .serving(advertising: false, degraded: nil))
            let call = try await fake.called("RegisterApplication")
            let path = try #require(call.arguments[0].asObjectPath?.appending("service0")?.appending("char0"))
            _ = try await fake.call(call.sender, path, "org.bluez.GattCharacteristic1", "StartNotify")
            #expect(await events.next() == .subscribed(HostBench.id, central: nil, attMTU: nil))
            try await fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .bool(false)])
            guard case .interrupted(let reason)? = await events.next() else { throw Unexpected() }
            #expect(reason.code == .poweredOff)
            await session.stop()
        }

        /// A controller that is no central while it advertises: the session that ends makes room without being asked.
        @Test func aConnectionAttemptWaitsForASessionThatEnds() async throws {
            let fake = try await FakeBlueZ()
            HostBench.callBack(fake)
            let held = Held()
            fake.on("UnregisterAdvertisement") { held.keep($0) }
            let core = RadioCore(address: fake.bus.busAddress, adapter: nil)
            let (id, _) = try await core.serve(HostBench.services, HostBench.request)
            let stopping = Task { await core.stopSession(id) }
            try await fake.called("UnregisterAdvertisement")
            let begun = ContinuousClock.now
            let holding = Task { await core.holdAdvertising() }
            while await !core.isASessionWaitedFor { await Task.yield() }
            for call in await held.take() { call.reply() }
            await stopping.value
            await holding.value
            #expect(ContinuousClock.now - begun < Limits.stop)
            await core.shutdown()
        }

        @Test func centralsComeAndGoWithConnected() async throws {
            let bench = try await HostBench()
            var events = bench.session.events.makeAsyncIterator()
            _ = await events.next()
            let device = try await bench.fake.addDevice(1, ["Connected": .bool(true)])
            #expect(await events.next() == .connected(Self.peer(1)))
            try await bench.fake.set(device, "org.bluez.Device1", ["Connected": .bool(false)])
            #expect(await events.next() == .disconnected(Self.peer(1)))
            await bench.session.stop()
        }

        /// Rule 14: many controllers stop advertising while a central is connected.
        @Test func registersAgainBesideTheFirstCentralAndRefreshesFromThenOn() async throws {
            let bench = try await HostBench()
            let changes = try await bench.fake.changes(from: bench.client, of: "org.bluez.LEAdvertisement1")
            let (answered, answer) = AsyncStream.makeStream(of: Void.self)
            bench.fake.on("RegisterAdvertisement") { call in
                call.reply()
                answer.yield()
            }
            let device = try await bench.fake.addDevice(1, ["Connected": .bool(true)])
            _ = await answered.first { true }
            #expect(bench.fake.calls.suffix(2) == ["UnregisterAdvertisement", "RegisterAdvertisement"])
            // There and back: the radio has the answer.
            _ = try await bench.call("StopNotify")
            var signals = changes.makeAsyncIterator()
            let second = try await bench.fake.addDevice(2, ["Connected": .bool(true)])
            #expect(await signals.next()?.body[1].asDictionary == ["Duration": .uint16(0)])
            for (path, isConnected) in [(device, false), (second, false), (device, true), (second, true)] {
                try await bench.fake.set(path, "org.bluez.Device1", ["Connected": .bool(isConnected)])
                #expect(await signals.next() != nil)
            }
            #expect(bench.fake.calls.count { $0 == "RegisterAdvertisement" } == 2)
            await bench.session.stop()
        }

        /// From 5.75 on bluetoothd survives a refresh that the kernel refuses.
        @Test func refreshesBesideTheFirstCentralWhereBluetoothdSurvivesARefusal() async throws {
            let fake = try await FakeBlueZ(start: false)
            try await fake.start(adapter: ["Modalias": .string("usb:v1D6Bp0246d0552")])
            let bench = try await HostBench(fake)
            let changes = try await fake.changes(from: bench.client, of: "org.bluez.LEAdvertisement1")
            try await fake.addDevice(1, ["Connected": .bool(true)])
            var signals = changes.makeAsyncIterator()
            #expect(await signals.next() != nil)
            #expect(!fake.calls.contains("UnregisterAdvertisement"))
            await bench.session.stop()
        }

        /// Rule 14, lab.md: after a power cycle ActiveInstances is 1 and nothing is advertised.
        @Test func registersEverythingAgainAfterAPowerCycle() async throws {
            let bench = try await HostBench()
            var events = bench.session.events.makeAsyncIterator()
            _ = await events.next()
            try await bench.fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .bool(false)])
            guard case .interrupted(let reason)? = await events.next() else { throw Unexpected() }
            #expect(reason.code == .poweredOff)
            // bluetoothd keeps what is not taken back, and has room for five.
            let first = try await bench.fake.called("RegisterAdvertisement").arguments[0]
            #expect(try await bench.fake.called("UnregisterAdvertisement").arguments[0] == first)
            try await bench.fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .bool(true)])
            #expect(await events.next() == .serving(advertising: true, degraded: nil))
            await bench.session.stop()
        }

        /// The adapter is switched off while bluetoothd is still at it.
        @Test func aRegistrationThatComesTooLateIsTakenBack() async throws {
            let fake = try await FakeBlueZ()
            let held = Held()
            HostBench.callBack(fake)
            fake.on("RegisterAdvertisement") { held.keep($0) }
            let serving = Task { try await fake.radio().serve(HostBench.services, advertising: HostBench.request) }
            let path = try await fake.called("RegisterAdvertisement").arguments[0]
            try await fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .bool(false)])
            let error = await #expect(throws: BluetoothError.self) { try await serving.value }
            #expect(error?.code == .poweredOff)
            for call in await held.take() { call.reply() }
            #expect(try await fake.called("UnregisterAdvertisement").arguments[0] == path)
        }

        /// Asked of a bluetoothd that has gone, it would start the next one, which knows nothing of it.
        @Test func nothingIsTakenBackOfABluetoothdThatHasGone() async throws {
            let fake = try await FakeBlueZ()
            let heir = try await DBusConnection.open(fake.bus.busAddress)
            let heard = FakeState()
            try await heir.exportObjectManager(at: .root)
            try await heir.export(
                FakeObject(["org.bluez.GattManager1": [:], "org.bluez.LEAdvertisingManager1": [:]]) {
                    heard.received($0)
                }, at: FakeBlueZ.adapter)
            // Queued: it owns the name in the moment in which the first one goes.
            _ = try await heir.call(
                "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
                [.string("org.bluez"), .uint32(0)])
            HostBench.callBack(fake)
            fake.on("RegisterAdvertisement") { _ in await fake.crash() }
            let radio = fake.radio()
            let error = await #expect(throws: BluetoothError.self) {
                try await radio.serve(HostBench.services, advertising: HostBench.request)
            }
            #expect(error?.code == .resetting)
            // There and back: the heir has heard what was sent before.
            let scan = await #expect(throws: BluetoothError.self) { try await radio.scan(for: ScanFilter()) }
            #expect(scan?.code == .adapterNotFound)
            #expect(heard.calls.map(\.member) == [])
        }

        /// bluetoothd keeps the application of an adapter that is off.
        @Test func anApplicationGoesWithItsSessionThoughTheAdapterIsOff() async throws {
            let bench = try await HostBench()
            let root = try await bench.fake.called("RegisterApplication").arguments[0]
            var events = bench.session.events.makeAsyncIterator()
            _ = await events.next()
            try await bench.fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .bool(false)])
            _ = await events.next()
            #expect(!bench.fake.calls.contains("UnregisterApplication"))
            await bench.session.stop()
            #expect(try await bench.fake.called("UnregisterApplication").arguments[0] == root)
        }

        /// Its answer comes when the adapter is off already, and the session has ended.
        @Test func anApplicationThatIsRegisteredTooLateGoesToo() async throws {
            let fake = try await FakeBlueZ()
            let held = Held()
            fake.on("RegisterApplication") { held.keep($0) }
            let serving = Task { try await fake.radio().serve(HostBench.services, advertising: HostBench.request) }
            let root = try await fake.called("RegisterApplication").arguments[0]
            try await fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .bool(false)])
            for call in await held.take() { call.reply() }
            let error = await #expect(throws: BluetoothError.self) { try await serving.value }
            #expect(error?.code == .poweredOff)
            #expect(try await fake.called("UnregisterApplication").arguments[0] == root)
        }

        /// Rule 25.
        @Test func registersEverythingAgainWhenBluetoothdIsBack() async throws {
            let bench = try await HostBench()
            var events = bench.session.events.makeAsyncIterator()
            _ = await events.next()
            await bench.fake.crash()
            guard case .interrupted(let reason)? = await events.next() else { throw Unexpected() }
            #expect(reason.code == .resetting)
            try await bench.fake.start()
            #expect(await events.next() == .serving(advertising: true, degraded: nil))
            await bench.session.stop()
        }

        /// Rule 25: the bus itself; everything is exported anew.
        @Test func registersEverythingAgainWhenTheBusIsBack() async throws {
            let bench = try await HostBench()
            var events = bench.session.events.makeAsyncIterator()
            _ = await events.next()
            bench.fake.bus.stop()
            guard case .interrupted? = await events.next() else { throw Unexpected() }
            await bench.fake.crash()
            try await bench.fake.bus.restart()
            try await bench.fake.start()
            #expect(await events.next() == .serving(advertising: true, degraded: nil))
            await bench.session.stop()
        }

        /// Rule 14.
        @Test func registersAgainOnRelease() async throws {
            let bench = try await HostBench()
            let path = try #require(try await bench.fake.called("RegisterAdvertisement").arguments[0].asObjectPath)
            _ = try await bench.fake.call(bench.client, path, "org.bluez.LEAdvertisement1", "Release")
            try await bench.fake.called("RegisterAdvertisement", times: 2)
            #expect(!bench.fake.calls.contains("UnregisterAdvertisement"))
            await bench.session.stop()
        }

        /// Rules 12, 13: the ladder, and what it cost is told.
        @Test func carriesOnWithoutTheIntervalWhereItIsRefused() async throws {
            let fake = try await FakeBlueZ()
            HostBench.callBack(fake)
            fake.on("RegisterAdvertisement") { call in
                guard let path = call.arguments[0].asObjectPath else { return }
                let all = try? await fake.call(
                    call.sender, path, "org.freedesktop.DBus.Properties", "GetAll",
                    [.string("org.bluez.LEAdvertisement1")])
                if all?.first?.asDictionary?["MinInterval"] == nil { return call.reply() }
                call.fail(name: "org.bluez.Error.Failed", message: "Failed to parse advertisement.")
            }
            let session = try await fake.radio().serve(HostBench.services, advertising: HostBench.request)
            var events = session.events.makeAsyncIterator()
            guard case .serving(true, let degraded?)? = await events.next() else { throw Unexpected() }
            #expect(degraded.message.contains("interval"))
            #expect(fake.calls.filter { $0 == "RegisterAdvertisement" }.count == 3)
            await session.stop()
        }

        @Test func anAdvertisementRefusedForGoodIsTheCallersError() async throws {
            let fake = try await FakeBlueZ()
            HostBench.callBack(fake)
            fake.fail("RegisterAdvertisement", "org.bluez.Error.NotPermitted", "Maximum advertisements reached")
            let error = await #expect(throws: BluetoothError.self) {
                try await fake.radio().serve(HostBench.services, advertising: HostBench.request)
            }
            #expect(error?.code == .advertisingFailed)
            #expect(error?.advice != nil)
            #expect(fake.calls.last == "UnregisterApplication")
        }

        /// Rules 4, 11: refused before anything is registered.
        @Test func whatCannotWorkIsRefusedAtOnce() async throws {
            let fake = try await FakeBlueZ()
            let both = [LocalService(1, characteristics: [LocalCharacteristic(2, [.write, .writeWithoutResponse])])]
            let long = AdvertisementRequest(localName: String(repeating: "x", count: 30), serviceUUIDs: [0x180A])
            for (services, request) in [(both, HostBench.request), (HostBench.services, long)] {
                let error = await #expect(throws: BluetoothError.self) {
                    try await fake.radio().serve(services, advertising: request)
                }
                #expect(error?.code == .invalidArgument)
            }
            #expect(fake.calls.isEmpty)
        }

        @Test func onlyBluetoothdMayCall() async throws {
            let bench = try await HostBench()
            let other = try await DBusConnection.open(bench.fake.bus.busAddress)
            let error = await #expect(throws: DBusError.self) {
                try await other.call(
                    bench.client, bench.path, "org.bluez.GattCharacteristic1", "WriteValue",
                    [.bytes([1]), HostBench.options(1)])
            }
            #expect(error?.code == .accessDenied)
            await bench.session.stop()
        }

        @Test func aSessionThatIsLetGoOfStops() async throws {
            let fake: FakeBlueZ
            do {
                let bench = try await HostBench()
                fake = bench.fake
            }
            try await fake.called("UnregisterApplication")
        }

        @Test func stopsInACancelledTask() async throws {
            let bench = try await HostBench()
            let session = bench.session
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                await session.stop()
            }
            await task.value
            #expect(bench.fake.calls.contains("UnregisterAdvertisement"))
        }

        /// bluez/bluez#584, rule 24.
        @Test func pausesAdvertisingWhileItConnectsWhereTheControllerCannotDoBoth() async throws {
            let fake = try await FakeBlueZ(start: false)
            try await fake.start(adapter: ["Roles": .strings(["central", "peripheral"])])
            let device = try await fake.addDevice(1)
            let bench = try await HostBench(fake)
            let link = try await OnABus.ConnectTests.link(fake, bench.radio, device)
            try await fake.called("RegisterAdvertisement", times: 2)
            #expect(
                fake.calls.suffix(3) == ["UnregisterAdvertisement", "Connect", "RegisterAdvertisement"])
            await link.disconnect()
            await bench.session.stop()
        }
    }
}

extension OnABus.PeripheralTests {
    @Test func requestsBeyondTheBoundAreRefused() async throws {
        let queue = SessionEventQueue()
        let write = WriteRequest(
            id: RequestID(rawValue: 1), central: Self.peer(1), characteristic: HostBench.id, value: [], offset: 0,
            attMTU: nil)
        for _ in 0..<Limits.sessionRequests { #expect(queue.offer(.write(write), isRequest: true)) }
        #expect(!queue.offer(.write(write), isRequest: true))
        #expect(queue.offer(.connected(Self.peer(1))))
        var events = queue.stream().makeAsyncIterator()
        #expect(await events.next() == .write(write))
        queue.finish()
    }
}

extension RadioCore {
    fileprivate var isASessionWaitedFor: Bool { sessions.values.contains { !$0.idleWaiters.isEmpty } }
}
