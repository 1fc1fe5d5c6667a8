// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

extension OnABus {
    @Suite(.timeLimit(.minutes(1))) struct ScanTests {
        private static let service: BluetoothUUID = 0x180A

        /// Rules 17, 18: the filter comes first, an RSSI always; what bluetoothd remembers is not seen.
        @Test func reportsWhatIsHeardAndNotWhatIsCached() async throws {
            let fake = try await FakeBlueZ()
            let cached = try await fake.addDevice(1, ["UUIDs": .strings([Self.service.longDescription])])
            let radio = fake.radio()
            let scan = try await radio.scan(for: ScanFilter(services: [Self.service], minimumRSSI: -60))
            #expect(fake.calls == ["SetDiscoveryFilter", "StartDiscovery"])
            let filter = await fake.called("SetDiscoveryFilter").arguments[0].asDictionary
            #expect(filter?["RSSI"] == .int16(-60))
            // Another client's device, one too far away, and then one that fits, piece by piece.
            try await fake.addDevice(2, ["RSSI": .int16(-40)])
            try await fake.addDevice(3, ["RSSI": .int16(-70), "UUIDs": .strings([Self.service.longDescription])])
            try await fake.set(cached, "org.bluez.Device1", ["RSSI": .int16(-50)])
            var events = scan.events.makeAsyncIterator()
            guard case .discovered(let discovery)? = await events.next() else { throw Unexpected() }
            #expect(discovery.peer.rawValue == cached.string)
            #expect(discovery.rssi == -50)
            #expect(discovery.address?.kind == .random)
            await fake.remove(cached)
            #expect(await events.next() == .gone(discovery.peer))
            await scan.stop()
            #expect(fake.calls.last == "StopDiscovery")
            #expect(await events.next() == nil)
        }

        /// `UUIDs` of a device whose services are remembered takes no notice of what it advertises.
        @Test(arguments: [true, false], [true, false])
        func whatIsRememberedIsFoundByWhatTheFilterLetsThrough(_ isAlone: Bool, _ namesServices: Bool) async throws {
            let fake = try await FakeBlueZ(start: false)
            try await fake.start(adapter: [
                "Discovering": .bool(!isAlone), "Modalias": .string("usb:v1D6Bp0246d0542"),
            ])
            let other: DBusValue = .strings([BluetoothUUID(0x1800).longDescription])
            let remembered = try await fake.addDevice(1, ["UUIDs": other])
            let paired = try await fake.addDevice(4, ["UUIDs": other, "Paired": .bool(true)])
            let filter = ScanFilter(services: namesServices ? [Self.service] : [], minimumRSSI: -60)
            let scan = try await fake.radio().scan(for: filter)
            // New, and another client's.
            try await fake.addDevice(2, ["RSSI": .int16(-40), "UUIDs": other])
            try await fake.set(paired, "org.bluez.Device1", ["RSSI": .int16(-50)])
            try await fake.set(remembered, "org.bluez.Device1", ["RSSI": .int16(-50)])
            try await fake.addDevice(3, ["RSSI": .int16(-40), "UUIDs": .strings([Self.service.longDescription])])
            var found: [String: Set<BluetoothUUID>] = [:]
            for await case .discovered(let discovery) in scan.events {
                found[discovery.peer.rawValue] = discovery.advertisement.serviceUUIDs
                if discovery.peer.rawValue.hasSuffix("03") { break }
            }
            #expect(found[remembered.string] == (!namesServices ? [0x1800] : isAlone ? [0x1800, Self.service] : nil))
            #expect(found.count == (!namesServices ? 4 : isAlone ? 2 : 1))
        }

        /// Rule 17: several scans of a process are one session with a merged filter.
        @Test func scansShareOneSession() async throws {
            let fake = try await FakeBlueZ()
            let radio = fake.radio()
            let one = try await radio.scan(for: ScanFilter(services: [0x180A], minimumRSSI: -60))
            let two = try await radio.scan(for: ScanFilter(services: [0x180F], minimumRSSI: -70))
            #expect(fake.calls == ["SetDiscoveryFilter", "StartDiscovery", "SetDiscoveryFilter"])
            await one.stop()
            await two.stop()
            #expect(fake.calls.suffix(2) == ["SetDiscoveryFilter", "StopDiscovery"])
        }

        /// The kernel discovers on for a bluetoothd that is gone, and the new one says so for about 10 s (5.66, 5.82).
        @Test func aScanThatIsHeldUpIsStartedAgainUntilItRuns() async throws {
            let fake = try await FakeBlueZ()
            fake.fail("StartDiscovery", "org.bluez.Error.InProgress")
            let scan = try await fake.radio().scan(for: ScanFilter())
            _ = await fake.called("StartDiscovery", times: 2)
            fake.succeed("StartDiscovery")
            _ = await fake.called("StartDiscovery", times: 3)
            _ = try await fake.addDevice(1, ["RSSI": .int16(-40)])
            var events = scan.events.makeAsyncIterator()
            guard case .discovered? = await events.next() else { throw Unexpected() }
            await scan.stop()
            #expect(fake.calls.last == "StopDiscovery")
        }

        /// More than 10 s of it are no remains of a bluetoothd: whoever scans is told, and told when it is over.
        @Test func aScanThatStaysHeldUpSaysSo() async throws {
            let fake = try await FakeBlueZ()
            fake.fail("StartDiscovery", "org.bluez.Error.InProgress")
            let scan = try await fake.radio().scan(for: ScanFilter())
            var events = scan.events.makeAsyncIterator()
            guard case .paused(let reason)? = await events.next() else { throw Unexpected() }
            #expect(reason.code == .serviceUnavailable && reason.advice?.contains("power off") == true)
            fake.succeed("StartDiscovery")
            #expect(await events.next() == .resumed)
            await scan.stop()
        }

        /// BlueZ keeps the link of an app that was killed, and who is connected does not advertise.
        @Test func aConnectedDeviceWithTheServiceIsReportedAtTheStart() async throws {
            let fake = try await FakeBlueZ()
            let service = BluetoothUUID(0x180A)
            let uuids = DBusValue.strings([service.longDescription])
            let path = try await fake.addDevice(1, ["Connected": .bool(true), "UUIDs": uuids])
            _ = try await fake.addDevice(2, ["UUIDs": uuids])
            _ = try await fake.addDevice(3, ["Connected": .bool(true)])
            let radio = fake.radio()
            let near = try await radio.scan(for: ScanFilter(services: [service], minimumRSSI: -90))
            let scan = try await radio.scan(for: ScanFilter(services: [service]))
            var events = scan.events.makeAsyncIterator()
            guard case .discovered(let discovery)? = await events.next() else { throw Unexpected() }
            #expect(discovery.peer.rawValue == path.string)
            #expect(discovery.rssi == nil)
            await scan.stop()
            await near.stop()
            #expect(await events.next() == nil)
            var none = near.events.makeAsyncIterator()
            #expect(await none.next() == nil)
        }

        /// A wake between the check and the suspension was lost, one time in fifteen, and the scan waited for 30 s.
        @Test func aBusThatIsNotThereIsToldEachTime() async {
            for _ in 0..<40 {
                let radio = BlueZRadio(BlueZConfiguration(bus: "unix:path=/nonexistent/bus"))
                let error = await #expect(throws: BluetoothError.self) { try await radio.scan(for: ScanFilter()) }
                #expect(error?.code == .serviceUnavailable)
            }
        }

        @Test func aFailureToStartIsTheCallersError() async throws {
            let fake = try await FakeBlueZ()
            fake.fail("StartDiscovery", "org.bluez.Error.NotReady")
            let error = await #expect(throws: BluetoothError.self) { try await fake.radio().scan(for: ScanFilter()) }
            #expect(error?.code == .poweredOff)
        }

        @Test func aScanThatIsLetGoOfStops() async throws {
            let fake = try await FakeBlueZ()
            let radio = fake.radio()
            do { _ = try await radio.scan(for: ScanFilter()) }
            await fake.called("StopDiscovery")
        }

        /// Rule 26, and issue 2's faults: powered off and on.
        @Test func goesOnWhenTheAdapterIsBack() async throws {
            let fake = try await FakeBlueZ()
            let scan = try await fake.radio().scan(for: ScanFilter())
            var events = scan.events.makeAsyncIterator()
            try await fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .bool(false)])
            guard case .paused(let reason)? = await events.next() else { throw Unexpected() }
            #expect(reason.code == .poweredOff)
            try await fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .bool(true)])
            #expect(await events.next() == .resumed)
            await fake.called("StartDiscovery", times: 2)
            await scan.stop()
        }

        /// Rule 25.
        @Test func goesOnWhenBluetoothdIsBack() async throws {
            let fake = try await FakeBlueZ()
            let scan = try await fake.radio().scan(for: ScanFilter())
            var events = scan.events.makeAsyncIterator()
            await fake.crash()
            guard case .paused(let reason)? = await events.next() else { throw Unexpected() }
            #expect(reason.code == .resetting)
            try await fake.start()
            #expect(await events.next() == .resumed)
            await fake.called("StartDiscovery", times: 2)
            await scan.stop()
        }

        /// Rule 25: the bus itself.
        @Test func goesOnWhenTheBusIsBack() async throws {
            let fake = try await FakeBlueZ()
            let scan = try await fake.radio().scan(for: ScanFilter())
            var events = scan.events.makeAsyncIterator()
            fake.bus.stop()
            guard case .paused(let reason)? = await events.next() else { throw Unexpected() }
            #expect(reason.code == .resetting)
            await fake.crash()
            try await fake.bus.restart()
            try await fake.start()
            #expect(await events.next() == .resumed)
            await fake.called("StartDiscovery", times: 2)
            await scan.stop()
        }
    }
}

extension OnABus {
    @Suite(.timeLimit(.minutes(1))) struct ConnectTests {
        private static func connecting(_ fake: FakeBlueZ, _ device: ObjectPath) {
            fake.on("Connect") { call in
                try? await fake.set(device, "org.bluez.Device1", ["Connected": .bool(true)])
                call.reply()
            }
            fake.on("Disconnect") { call in
                try? await fake.set(
                    device, "org.bluez.Device1", ["Connected": .bool(false), "ServicesResolved": .bool(false)])
                call.reply()
            }
        }

        static func link(_ fake: FakeBlueZ, _ radio: BlueZRadio, _ device: ObjectPath) async throws
            -> any PeripheralConnection
        {
            connecting(fake, device)
            return try await radio.connect(to: PeerIdentifier(device.string), timeout: .seconds(10))
        }

        @Test func connectsAndDisconnects() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let link = try await Self.link(fake, fake.radio(), device)
            await link.disconnect()
            await link.disconnect()
            #expect(await link.disconnection() == .local)
            #expect(fake.calls == ["Connect", "Disconnect"])
        }

        /// Rule 19: a temporary device has vanished.
        @Test func anUnknownDeviceIsNotFound() async throws {
            let fake = try await FakeBlueZ()
            let radio = fake.radio()
            for peer in ["/org/bluez/hci0/dev_9", "not a path"] {
                let error = await #expect(throws: BluetoothError.self) {
                    try await radio.connect(to: PeerIdentifier(peer), timeout: .seconds(1))
                }
                #expect(error?.code == .peerNotFound)
            }
            try await fake.addDevice(1)
            fake.fail("Connect", ErrorName.unknownObject)
            let error = await #expect(throws: BluetoothError.self) {
                try await radio.connect(to: PeerIdentifier(FakeBlueZ.device(1).string), timeout: .seconds(1))
            }
            #expect(error?.code == .peerNotFound)
        }

        /// Rule 20: the deadline is ours, and Disconnect calls the attempt off.
        @Test func theDeadlineCallsTheAttemptOff() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let held = Held()
            fake.on("Connect") { held.keep($0) }
            let error = await #expect(throws: BluetoothError.self) {
                try await fake.radio().connect(to: PeerIdentifier(device.string), timeout: .milliseconds(20))
            }
            #expect(error?.code == .timedOut)
            #expect(fake.calls == ["Connect", "Disconnect"])
        }

        @Test func cancellingCallsTheAttemptOff() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let held = Held()
            fake.on("Connect") { held.keep($0) }
            let radio = fake.radio()
            let task = Task {
                await #expect(throws: BluetoothError.self) {
                    try await radio.connect(to: PeerIdentifier(device.string), timeout: .seconds(30))
                }
            }
            await fake.called("Connect")
            task.cancel()
            #expect(await task.value?.code == .cancelled)
            #expect(fake.calls == ["Connect", "Disconnect"])
        }

        /// Rule 20: one branch of bluetoothd answers success without a link.
        @Test func successWithoutALinkIsAFailure() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let error = await #expect(throws: BluetoothError.self) {
                try await fake.radio().connect(to: PeerIdentifier(device.string), timeout: .seconds(10))
            }
            #expect(error?.code == .connectionFailed)
        }

        /// bluetoothd 5.66 and later, where its ATT socket is faster than the kernel's event.
        @Test func aLinkThatIsNeverSignalledIsUp() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            fake.on("Connect") { call in
                fake.setSilently(device, "org.bluez.Device1", ["Connected": .bool(true)])
                call.reply()
            }
            let link = try await fake.radio().connect(to: PeerIdentifier(device.string), timeout: .seconds(10))
            try await fake.set(device, "org.bluez.Device1", ["Connected": .bool(false)])
            #expect(await link.disconnection() == .unknown)
        }

        /// Rule 20: never Connect what is connected.
        @Test func usesALinkThatIsThere() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1, ["Connected": .bool(true)])
            let radio = fake.radio()
            let link = try await radio.connect(to: PeerIdentifier(device.string), timeout: .seconds(10))
            #expect(fake.calls.isEmpty)
            let error = await #expect(throws: BluetoothError.self) {
                try await radio.connect(to: PeerIdentifier(device.string), timeout: .seconds(10))
            }
            #expect(error?.code == .busy)
            await link.disconnect()
            #expect(fake.calls == ["Disconnect"])
        }

        /// Another program connects to the device at the same time, and gets its link.
        @Test func anotherProgramsLinkIsNotTakenDown() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            fake.on("Connect") { call in
                try? await fake.set(device, "org.bluez.Device1", ["Connected": .bool(true)])
                call.fail(name: "org.bluez.Error.InProgress", message: "")
            }
            let radio = fake.radio()
            let error = await #expect(throws: BluetoothError.self) {
                try await radio.connect(to: PeerIdentifier(device.string), timeout: .seconds(10))
            }
            #expect(error?.code == .busy)
            #expect(fake.calls == ["Connect"])
        }

        /// Rule 23.
        @Test func aLinkThatIsLetGoOfIsTakenDown() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            do { _ = try await Self.link(fake, fake.radio(), device) }
            await fake.called("Disconnect")
        }

        @Test(
            arguments: [
                ("org.bluez.Reason.Remote", DisconnectReason.remote), ("org.bluez.Reason.Timeout", .timeout),
                (nil, .unknown),
            ] as [(String?, DisconnectReason)])
        func saysWhyTheLinkWentDown(signal: String?, reason: DisconnectReason) async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let link = try await Self.link(fake, fake.radio(), device)
            if let signal {
                try await fake.signal(device, "org.bluez.Device1", "Disconnected", [.string(signal), .string("")])
            }
            try await fake.set(device, "org.bluez.Device1", ["Connected": .bool(false)])
            #expect(await link.disconnection() == reason)
            let error = await #expect(throws: BluetoothError.self) { try await link.discoverServices() }
            #expect(error?.code == .disconnected)
        }

        @Test func aLinkEndsWithBluetoothd() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let link = try await Self.link(fake, fake.radio(), device)
            let services = Task { await #expect(throws: BluetoothError.self) { try await link.discoverServices() } }
            await fake.crash()
            #expect(await link.disconnection() == .adapterLost)
            #expect(await services.value?.code == .resetting)
        }
    }
}

struct Unexpected: Error {}

/// Calls that are never answered.
///
/// `@unchecked Sendable`: `calls` is guarded by `lock`.
final class Held: @unchecked Sendable {
    private let lock = Lock()
    private var calls: [MethodCall] = []
    private var waiter: CheckedContinuation<[MethodCall], Never>?

    func keep(_ call: MethodCall) {
        let waiter = lock.withLock {
            if self.waiter == nil { calls.append(call) }
            defer { self.waiter = nil }
            return self.waiter
        }
        waiter?.resume(returning: [call])
    }

    /// One or more: a call is known to have been made a moment before it is kept.
    func take() async -> [MethodCall] {
        await withCheckedContinuation { continuation in
            let kept = lock.withLock {
                if calls.isEmpty { waiter = continuation }
                defer { calls = [] }
                return calls
            }
            if !kept.isEmpty { continuation.resume(returning: kept) }
        }
    }
}
