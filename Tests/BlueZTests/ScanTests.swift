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
            let filter = try await fake.called("SetDiscoveryFilter").arguments[0].asDictionary
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
            _ = try await fake.called("StartDiscovery", times: 2)
            fake.succeed("StartDiscovery")
            _ = try await fake.called("StartDiscovery", times: 3)
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
            try await fake.called("StopDiscovery")
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
            try await fake.called("StartDiscovery", times: 2)
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
            try await fake.called("StartDiscovery", times: 2)
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
            try await fake.called("StartDiscovery", times: 2)
            await scan.stop()
        }
    }
}
