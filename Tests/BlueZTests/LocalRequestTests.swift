// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Synchronization
import Testing

@testable import BlueZ

extension OnABus {
    /// What bluetoothd asks of a session's characteristics, and what it is told.
    @Suite(.timeLimit(.minutes(1))) struct LocalRequestTests {
        private static func peer(_ number: Int) -> PeerIdentifier { PeerIdentifier(FakeBlueZ.device(number).string) }

        /// Its `Modalias` says that it overflows.
        private static func bluez555() async throws -> FakeBlueZ {
            let fake = try await FakeBlueZ(start: false)
            try await fake.start(adapter: ["Modalias": .string("usb:v1D6Bp0246d0537")])
            return fake
        }

        /// Rules 2, 3, 9: what the characteristic shows.
        @Test func theCharacteristicShowsNotifyAcquiredAndNeitherWriteAcquiredNorAValue() async throws {
            let bench = try await HostBench()
            _ = try await bench.call("StartNotify")
            try await bench.session.notify([1], on: HostBench.id, to: nil)
            let all = try await bench.fake.call(
                bench.client, bench.path, "org.freedesktop.DBus.Properties", "GetAll",
                [.string("org.bluez.GattCharacteristic1")])
            let names = try #require(all.first?.asDictionary?.keys)
            #expect(Set(names) == ["UUID", "Service", "Flags", "NotifyAcquired"])
            await bench.session.stop()
        }

        /// Rules 2, 5, 7.
        @Test func aRequestHasItsDeviceItsMTUAndItsAnswer() async throws {
            let bench = try await HostBench()
            var events = bench.session.events.makeAsyncIterator()
            _ = await events.next()
            async let answer = bench.call("ReadValue", [HostBench.options(1, offset: 3)])
            #expect(await events.next() == .connected(Self.peer(1)))
            guard case .read(let read)? = await events.next() else { throw Unexpected() }
            #expect(read.central == Self.peer(1))
            #expect(read.offset == 3)
            #expect(read.attMTU == 185)
            await bench.session.respond(to: read.id, with: .value([1, 2]))
            await bench.session.respond(to: read.id, with: .refuse(.unlikelyError))
            #expect(try await answer == [.bytes([1, 2])])

            let refused = Task {
                await #expect(throws: DBusError(name: "org.bluez.Error.Failed", message: "0x80")) {
                    try await bench.call("WriteValue", [.bytes([9]), HostBench.options(1)])
                }
            }
            guard case .write(let write)? = await events.next() else { throw Unexpected() }
            #expect(write.value == [9])
            await bench.session.respond(to: write.id, with: .refuse(.application))
            _ = await refused.value
            await bench.session.stop()
        }

        /// Rule 2.
        @Test func acquireNotifySaysWhoSubscribes() async throws {
            let bench = try await HostBench()
            var events = bench.session.events.makeAsyncIterator()
            _ = await events.next()
            let error = await #expect(throws: DBusError.self) {
                try await bench.call("AcquireNotify", [HostBench.options(1)])
            }
            #expect(error?.name == "org.bluez.Error.NotSupported")
            _ = try await bench.call("StartNotify")
            #expect(await events.next() == .connected(Self.peer(1)))
            #expect(await events.next() == .subscribed(HostBench.id, central: Self.peer(1), attMTU: 185))
            _ = try await bench.call("StopNotify")
            #expect(await events.next() == .unsubscribed(HostBench.id, central: nil))
            _ = try await bench.call("StartNotify")
            #expect(await events.next() == .subscribed(HostBench.id, central: nil, attMTU: nil))
            await bench.session.stop()
        }

        /// Rule 9.
        @Test func eachNotificationIsOneChange() async throws {
            let bench = try await HostBench()
            _ = try await bench.call("StartNotify")
            let connection = try #require(bench.fake.state.connection)
            let changes = try await connection.signals(.propertiesChanged(sender: bench.client, path: bench.path))
            for value: [UInt8] in [[1], [1], [2]] { try await bench.session.notify(value, on: HostBench.id, to: nil) }
            var iterator = changes.makeAsyncIterator()
            for value: [UInt8] in [[1], [1], [2]] {
                let body = await iterator.next()?.body
                #expect(body?[1].asDictionary == ["Value": .bytes(value)])
                #expect(body?[2].asStrings == [])
            }
            await bench.session.stop()
        }

        /// Before 5.60 bluetoothd writes past the end of what it gathers for 10 ms, and those begin when it reads the first.
        @Test func notificationsAreApartWhereBluetoothdOverflows() async throws {
            let fake = try await Self.bluez555()
            fake.on("GetDiscoveryFilters") { $0.reply([.strings(["UUIDs"])]) }
            let bench = try await HostBench(fake)
            _ = try await bench.call("StartNotify")
            let began = ContinuousClock.now
            for value: UInt8 in 1...20 { try await bench.session.notify([value], on: HostBench.id, to: nil) }
            #expect(ContinuousClock.now - began >= .milliseconds(19 * 11))
            await bench.session.stop()
        }

        /// And it may read late.
        @Test func aLateBluetoothdIsToldNothingBeforeItHasReadTheLast() async throws {
            let fake = try await Self.bluez555()
            let bench = try await HostBench(fake)
            _ = try await bench.call("StartNotify")
            let connection = try #require(fake.state.connection)
            let changes = try await connection.signals(.propertiesChanged(sender: bench.client, path: bench.path))
            let received = Mutex(0)
            let reader = Task { for await _ in changes { received.withLock { $0 += 1 } } }
            defer { reader.cancel() }
            fake.on("GetDiscoveryFilters") { call in
                let before = fake.calls.count { $0 == "GetDiscoveryFilters" }
                let late = ContinuousClock.now + .milliseconds(40)
                while ContinuousClock.now < late {
                    _ = try? await fake.call(bench.client, bench.path, "org.freedesktop.DBus.Peer", "Ping")
                }
                #expect(received.withLock { $0 } <= before)
                call.reply([.strings([])])
            }
            for value: UInt8 in 1...3 { try await bench.session.notify([value], on: HostBench.id, to: nil) }
            #expect(fake.calls.count { $0 == "GetDiscoveryFilters" } >= 2)
            await bench.session.stop()
        }

        @Test func aNotificationThatDoesNotGoOutGivesItsTurnAway() async throws {
            let fake = try await Self.bluez555()
            // Answered with an error, which is an answer.
            fake.fail("GetDiscoveryFilters", "org.freedesktop.DBus.Error.NoReply")
            let bench = try await HostBench(fake)
            _ = try await bench.call("StartNotify")
            let calledOff = (1...5).map { value in
                Task { try await bench.session.notify([UInt8(value)], on: HostBench.id, to: nil) }
            }
            for task in calledOff { task.cancel() }
            for task in calledOff { _ = await task.result }
            await #expect(throws: BluetoothError.self) {
                try await bench.session.notify([6], on: HostBench.id, to: Self.peer(9))
            }
            try await bench.session.notify([7], on: HostBench.id, to: nil)
            await bench.session.stop()
        }

        @Test func aNotificationForNobodyIsRefused() async throws {
            let bench = try await HostBench()
            let nobody = await #expect(throws: BluetoothError.self) {
                try await bench.session.notify([1], on: HostBench.id, to: nil)
            }
            #expect(nobody?.code == .notConnected)
            _ = try await bench.call("StartNotify")
            // Rule 1: it would reach the others.
            let gone = await #expect(throws: BluetoothError.self) {
                try await bench.session.notify([1], on: HostBench.id, to: Self.peer(5))
            }
            #expect(gone?.code == .notConnected)
            await bench.session.stop()
        }
    }
}
