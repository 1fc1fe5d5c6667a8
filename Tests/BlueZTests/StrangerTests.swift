// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

extension OnABus {
    /// Other clients of the bus, and a bluetoothd that does not answer.
    @Suite(.timeLimit(.minutes(1))) struct StrangerTests {
        private static func stranger(_ bench: HostBench) async throws -> DBusConnection {
            try await DBusConnection.open(bench.fake.bus.busAddress, on: EventLoop(name: "stranger"))
        }

        @Test(arguments: ["ReadValue", "WriteValue", "AcquireNotify", "StartNotify", "StopNotify", "Confirm"])
        func aStrangersCallIsRefused(member: String) async throws {
            let bench = try await HostBench()
            let stranger = try await Self.stranger(bench)
            let options = HostBench.options(1)
            let body: [DBusValue] =
                switch member {
                case "ReadValue", "AcquireNotify": [options]
                case "WriteValue": [.bytes([1]), options]
                default: []
                }
            let present = await #expect(throws: DBusError.self) {
                try await stranger.call(bench.client, bench.path, "org.bluez.GattCharacteristic1", member, body)
            }
            #expect(present?.code == .accessDenied || present?.name == "org.freedesktop.DBus.Error.AccessDenied")
            // While there is no bluetoothd, nobody can speak for it.
            var events = bench.session.events.makeAsyncIterator()
            await bench.fake.crash()
            while let event = await events.next() {
                if case .interrupted = event { break }
            }
            let absent = await #expect(throws: DBusError.self) {
                try await stranger.call(bench.client, bench.path, "org.bluez.GattCharacteristic1", member, body)
            }
            #expect(absent?.name == "org.freedesktop.DBus.Error.AccessDenied")
            await stranger.close()
            await bench.session.stop()
        }

        @Test func aStrangerCannotTakeTheAdvertisementBack() async throws {
            let bench = try await HostBench()
            let stranger = try await Self.stranger(bench)
            let path = try #require(try await bench.fake.called("RegisterAdvertisement").arguments[0].asObjectPath)
            _ = try await stranger.call(bench.client, path, "org.bluez.LEAdvertisement1", "Release")
            let all = try await bench.fake.call(
                bench.client, path, "org.freedesktop.DBus.Properties", "GetAll",
                [.string("org.bluez.LEAdvertisement1")])
            #expect(all.first?.asDictionary?["Type"] == .string("peripheral"))
            await stranger.close()
            await bench.session.stop()
        }

        @Test func aValueLongerThanAnAttributeIsRefused() async throws {
            let bench = try await HostBench()
            let error = await #expect(throws: DBusError.self) {
                try await bench.call(
                    "WriteValue", [.bytes([UInt8](repeating: 1, count: 1 << 20)), HostBench.options(1)])
            }
            #expect(error?.name == "org.bluez.Error.InvalidValueLength")
            await bench.session.stop()
        }

        /// The call is given up before its answer: what comes about then is taken back.
        @Test func aRegistrationThatIsAnsweredAfterTheEndIsUndone() async throws {
            let fake = try await FakeBlueZ()
            fake.on("RegisterApplication") { call in
                // Keeps the call, and with it its answer, until the session has ended.
                await withCheckedContinuation { (ended: CheckedContinuation<Void, Never>) in
                    fake.on("Ended") { _ in ended.resume() }
                }
                call.reply()
            }
            let radio = fake.radio()
            let serving = Task { try await radio.serve(HostBench.services, advertising: HostBench.request) }
            let call = try await fake.called("RegisterApplication")
            serving.cancel()
            await #expect(throws: BluetoothError.cancelled) { try await serving.value }
            fake.state.received(
                MethodCall(
                    sender: call.sender, path: call.path, interface: "", member: "Ended", arguments: [],
                    answer: { _ in }))
            try await fake.called("UnregisterApplication")
            #expect(!fake.calls.contains("RegisterAdvertisement"))
        }
    }
}
