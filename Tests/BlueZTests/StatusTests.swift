// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

/// Rule 26: adapters that are missing, off, late, or chosen.
extension OnABus {
    @Suite(.timeLimit(.minutes(1))) struct StatusTests {
        private static func next(
            _ states: inout AsyncStream<AdapterStatus>.Iterator, until state: AdapterState
        ) async -> AdapterStatus? {
            while let status = await states.next() {
                if status.state == state { return status }
            }
            return nil
        }

        @Test func followsTheAdapterThroughItsLife() async throws {
            let fake = try await FakeBlueZ()
            await fake.remove(FakeBlueZ.adapter)
            var states = fake.radio().adapterStatuses().makeAsyncIterator()
            #expect(await states.next()?.state == .unknown)
            let none = await states.next()
            #expect(none?.state == .unsupported)
            #expect(none?.reason?.code == .adapterNotFound)
            try await fake.addAdapter(["Powered": .bool(false)])
            let off = await states.next()
            #expect(off?.state == .poweredOff)
            #expect(off?.adapter == "hci0")
            #expect(off?.reason?.advice != nil)
            try await fake.set(FakeBlueZ.adapter, "org.bluez.Adapter1", ["Powered": .bool(true)])
            let on = await states.next()
            #expect(on?.state == .poweredOn)
            #expect(on?.address?.description == "00:11:22:33:44:55")
            await fake.crash()
            #expect(await states.next()?.state == .resetting)
            try await fake.start()
            #expect(await Self.next(&states, until: .poweredOn) != nil)
        }

        @Test func noBluetoothServiceIsSaidAndItsArrivalNoticed() async throws {
            let fake = try await FakeBlueZ(start: false)
            let radio = fake.radio()
            var states = radio.adapterStatuses().makeAsyncIterator()
            let missing = await Self.next(&states, until: .unsupported)
            #expect(missing?.reason?.code == .serviceUnavailable)
            let error = await #expect(throws: BluetoothError.self) { try await radio.scan(for: ScanFilter()) }
            #expect(error?.code == .serviceUnavailable)
            #expect(error?.advice?.contains("systemctl start bluetooth") == true)
            try await fake.start()
            #expect(await Self.next(&states, until: .poweredOn) != nil)
        }

        @Test func noBusIsSaidAtOnce() async throws {
            let radio = BlueZRadio(BlueZConfiguration(bus: "unix:path=/nonexistent/bus"))
            let error = await #expect(throws: BluetoothError.self) { try await radio.scan(for: ScanFilter()) }
            #expect(error?.code == .serviceUnavailable)
            await radio.shutdown()
        }

        @Test func anAdapterThatIsNotThereIsNamed() async throws {
            let fake = try await FakeBlueZ()
            let error = await #expect(throws: BluetoothError.self) {
                try await fake.radio(adapter: "hci7").scan(for: ScanFilter())
            }
            #expect(error?.code == .adapterNotFound)
            #expect(error?.subject == "hci7")
        }

        @Test func servingNeedsAnAdapterThatIsOn() async throws {
            let fake = try await FakeBlueZ(start: false)
            try await fake.start(adapter: ["Powered": .bool(false)])
            let error = await #expect(throws: BluetoothError.self) {
                try await fake.radio().serve(HostBench.services, advertising: nil)
            }
            #expect(error?.code == .poweredOff)
        }

        /// Their end is told to nobody who could hear it, and they count against the limit on streams.
        @Test func streamsWhoseReadersHaveGoneAreForgotten() async {
            let core = RadioCore(address: .address("unix:path=/nonexistent/bus"), adapter: nil)
            for _ in 0..<Limits.statusStreams {
                let (_, ended) = AsyncStream.makeStream(of: AdapterStatus.self)
                ended.finish()
                await core.addStatusStream(core.newID(), ended)
            }
            let (stream, statuses) = AsyncStream.makeStream(of: AdapterStatus.self)
            await core.addStatusStream(core.newID(), statuses)
            var states = stream.makeAsyncIterator()
            #expect(await states.next() != nil)
            #expect(await core.statusStreams.count == 1)
        }

        /// Who only reads the states calls nothing that would ask again.
        @Test(arguments: ["GetNameOwner", "AddMatch"])
        func whatFollowsBluetoothdIsAskedForAgain(member: String) async throws {
            let fake = try await FakeBlueZ()
            try await fake.refuse([member])
            var states = fake.radio().adapterStatuses().makeAsyncIterator()
            #expect(await Self.next(&states, until: .unauthorized) != nil)
            try await fake.refuse([])
            #expect(await Self.next(&states, until: .poweredOn) != nil)
        }

        /// With the same owner all the while: nothing on the bus tells that it is well again.
        @Test func aBluetoothdThatRecoversIsNoticed() async throws {
            let fake = try await FakeBlueZ()
            var states = fake.radio().adapterStatuses().makeAsyncIterator()
            #expect(await Self.next(&states, until: .poweredOn) != nil)
            await fake.crash()
            #expect(await Self.next(&states, until: .resetting) != nil)
            try await fake.startUnwell()
            #expect(await Self.next(&states, until: .unsupported) != nil)
            try await fake.recovered()
            #expect(await Self.next(&states, until: .poweredOn) != nil)
        }

        @Test func onlyAFailedViewThatSomebodyWantsIsAskedForAgain() async throws {
            let fake = try await FakeBlueZ(start: false)
            try await fake.startUnwell()
            let core = RadioCore(address: fake.bus.busAddress, adapter: nil, loop: EventLoop(name: "core")) { _ in nil }
            let (stream, statuses) = AsyncStream.makeStream(of: AdapterStatus.self)
            var states = stream.makeAsyncIterator()
            let first = await core.newID()
            await core.addStatusStream(first, statuses)
            #expect(await Self.next(&states, until: .unsupported) != nil)
            #expect(await core.viewTimer != nil)
            await core.removeStatusStream(first)
            #expect(await core.viewTimer == nil)
            await core.addStatusStream(core.newID(), statuses)
            #expect(await core.viewTimer != nil)
            try await fake.recovered()
            #expect(await Self.next(&states, until: .poweredOn) != nil)
            #expect(await core.viewTimer == nil)
            await core.release()
        }

        /// Its arrival will be told; asking would start it.
        @Test func aBluetoothdThatIsNotThereIsNotAskedAgain() async throws {
            let fake = try await FakeBlueZ(start: false)
            let core = RadioCore(address: fake.bus.busAddress, adapter: nil, loop: EventLoop(name: "core")) { _ in nil }
            let (stream, statuses) = AsyncStream.makeStream(of: AdapterStatus.self)
            var states = stream.makeAsyncIterator()
            await core.addStatusStream(core.newID(), statuses)
            #expect(await Self.next(&states, until: .unsupported) != nil)
            #expect(await core.viewTimer == nil)
            await core.release()
        }

        @Test func shuttingDownEndsTheStream() async throws {
            let fake = try await FakeBlueZ()
            let radio = fake.radio()
            var states = radio.adapterStatuses().makeAsyncIterator()
            _ = await Self.next(&states, until: .poweredOn)
            await radio.shutdown()
            #expect(await states.next() == nil)
        }
    }
}
