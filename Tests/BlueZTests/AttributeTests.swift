// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

extension OnABus {
    @Suite(.timeLimit(.minutes(1))) struct AttributeTests {
        private static let service: BluetoothUUID = 0x180A
        private static let uuid: BluetoothUUID = 0x2A29

        /// A connected device with one characteristic.
        private struct Bench {
            let fake: FakeBlueZ
            let device: ObjectPath
            let path: ObjectPath
            let link: any PeripheralConnection
            let characteristic: RemoteCharacteristic

            init() async throws {
                fake = try await FakeBlueZ()
                device = try await fake.addDevice(1)
                path = try await fake.addService(
                    device, uuid: service, characteristic: uuid, flags: ["read", "write", "notify"])
                link = try await OnABus.ConnectTests.link(fake, fake.radio(), device)
                try await fake.set(device, "org.bluez.Device1", ["ServicesResolved": .bool(true)])
                let services = try await link.discoverServices(awaiting: uuid)
                characteristic = try #require(services.first?.characteristics.first)
            }

            func value(_ bytes: [UInt8]) async throws {
                try await fake.set(path, "org.bluez.GattCharacteristic1", ["Value": .bytes(bytes)])
            }
        }

        /// bluez/bluez#1489: `ServicesResolved` before the objects.
        @Test func waitsForTheCharacteristicItself() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let link = try await OnABus.ConnectTests.link(fake, fake.radio(), device)
            try await fake.set(device, "org.bluez.Device1", ["ServicesResolved": .bool(true)])
            let found = Task { try await link.discoverServices(awaiting: Self.uuid) }
            try await fake.addService(device, uuid: Self.service, characteristic: Self.uuid, flags: ["read"])
            #expect(try await found.value.first?.characteristics.first?.uuid == Self.uuid)
            #expect(await link.attMTU == 185)
        }

        /// A cached device's objects are older than the MTU, and nothing signals the change.
        @Test func theSmallestMTUIsAskedForAgain() async throws {
            let bench = try await Bench()
            try await bench.fake.set(bench.path, "org.bluez.GattCharacteristic1", ["MTU": .uint16(23)])
            // There and back: what was signalled before is known.
            try await bench.link.write([1], to: bench.characteristic, type: .withResponse)
            #expect(await bench.link.attMTU == 23)
            bench.fake.state.object(bench.path)?.set("org.bluez.GattCharacteristic1", ["MTU": .uint16(517)], [])
            #expect(await bench.link.attMTU == 517)
        }

        @Test func whatDoesNotAppearIsNotThere() async throws {
            let bench = try await Bench()
            let services = try await bench.link.discoverServices(awaiting: 0x2A00)
            #expect(services.first?.characteristics.map(\.uuid) == [Self.uuid])
        }

        /// Rule 22.
        @Test func writesToOneCharacteristicAreQueued() async throws {
            let bench = try await Bench()
            let held = Held()
            bench.fake.on("WriteValue") { held.keep($0) }
            let (link, characteristic) = (bench.link, bench.characteristic)
            let first = Task { try await link.write([1], to: characteristic, type: .withResponse) }
            try await bench.fake.called("WriteValue")
            let second = Task.immediate { try await link.write([2], to: characteristic, type: .withoutResponse) }
            // A call on the same bus: had the second write been sent, it would have come before.
            bench.fake.on("StopNotify") { $0.reply() }
            let subscription = try await link.subscribe(to: characteristic)
            await subscription.cancel()
            #expect(bench.fake.calls.filter { $0 == "WriteValue" }.count == 1)
            for call in await held.take() { call.reply() }
            try await first.value
            let call = try await bench.fake.called("WriteValue", times: 2)
            #expect(call.arguments[0] == .bytes([2]))
            #expect(call.arguments[1].asDictionary?["type"] == .string("command"))
            call.reply()
            try await second.value
        }

        @Test func aCancelledWriteKeepsItsPlaceUntilBluetoothdIsDone() async throws {
            let bench = try await Bench()
            let held = Held()
            bench.fake.on("WriteValue") { held.keep($0) }
            let (link, characteristic) = (bench.link, bench.characteristic)
            let first = Task {
                await #expect(throws: BluetoothError.self) {
                    try await link.write([1], to: characteristic, type: .withResponse)
                }
            }
            try await bench.fake.called("WriteValue")
            first.cancel()
            #expect(await first.value?.code == .cancelled)
            let second = Task.immediate { try await link.write([2], to: characteristic, type: .withResponse) }
            // As above: it would have come before.
            bench.fake.on("StopNotify") { $0.reply() }
            let subscription = try await link.subscribe(to: characteristic)
            await subscription.cancel()
            #expect(bench.fake.calls.filter { $0 == "WriteValue" }.count == 1)
            for call in await held.take() { call.reply() }
            try await bench.fake.called("WriteValue", times: 2).reply()
            try await second.value
        }

        @Test func aRefusedWriteHasThePeersATTError() async throws {
            let bench = try await Bench()
            bench.fake.fail("WriteValue", "org.bluez.Error.Failed", "Operation failed with ATT error: 0x80")
            let error = await #expect(throws: BluetoothError.self) {
                try await bench.link.write([1], to: bench.characteristic, type: .withResponse)
            }
            #expect(error?.att == .application)
        }

        /// What is under way when its link is lost fails with 0x0E, and the loss may be told behind that.
        @Test(arguments: ["WriteValue", "ReadValue", "StartNotify"])
        func aLossThatIsToldAfterTheFailureIsWhatFailed(_ member: String) async throws {
            let bench = try await Bench()
            let (fake, link, characteristic) = (bench.fake, bench.link, bench.characteristic)
            fake.on(member) { call in
                call.fail(name: "org.bluez.Error.Failed", message: "Operation failed with ATT error: 0x0e")
                // There and back, and again: the failure has arrived, and has been looked at.
                for _ in 1...5 { _ = await link.attMTU }
                try? await fake.set(bench.device, "org.bluez.Device1", ["Connected": .bool(false)])
            }
            let error = await #expect(throws: BluetoothError.self) {
                switch member {
                case "WriteValue": try await link.write([1], to: characteristic, type: .withResponse)
                case "ReadValue": _ = try await link.read(characteristic)
                default: _ = try await link.subscribe(to: characteristic)
                }
            }
            #expect(error?.code == .disconnected)
            #expect(error?.att == nil)
        }

        @Test func aPeersUnlikelyErrorStaysOneWhereTheLinkHolds() async throws {
            let bench = try await Bench()
            bench.fake.fail("WriteValue", "org.bluez.Error.Failed", "Operation failed with ATT error: 0x0e")
            let error = await #expect(throws: BluetoothError.self) {
                try await bench.link.write([1], to: bench.characteristic, type: .withResponse)
            }
            #expect(error?.att == .unlikelyError)
        }

        @Test func tooLongAValueIsRefusedHere() async throws {
            let bench = try await Bench()
            let error = await #expect(throws: BluetoothError.self) {
                try await bench.link.write(
                    [UInt8](repeating: 0, count: 513), to: bench.characteristic, type: .withResponse)
            }
            #expect(error?.code == .invalidArgument)
        }

        /// bleak#1885: a notification that overtakes the answer of StartNotify.
        @Test func anEarlyNotificationIsKept() async throws {
            let bench = try await Bench()
            bench.fake.on("StartNotify") { call in
                try? await bench.value([1])
                call.reply()
            }
            let subscription = try await bench.link.subscribe(to: bench.characteristic)
            try await bench.value([2])
            var values = subscription.values.makeAsyncIterator()
            #expect(await values.next() == [1])
            #expect(await values.next() == [2])
        }

        /// Rule 22: the change of `Value` that a read causes is no notification; one that comes meanwhile is.
        @Test func theEchoOfAReadIsNoNotification() async throws {
            let bench = try await Bench()
            let subscription = try await bench.link.subscribe(to: bench.characteristic)
            bench.fake.on("ReadValue") { call in
                try? await bench.value([7])
                try? await bench.value([9])
                call.reply([.bytes([9])])
            }
            #expect(try await bench.link.read(bench.characteristic) == [9])
            try await bench.value([9])
            var values = subscription.values.makeAsyncIterator()
            #expect(await values.next() == [7])
            #expect(await values.next() == [9])
            await bench.link.disconnect()
            #expect(await values.next() == nil)
        }

        /// Rule 22: N subscribers, one StartNotify, N streams.
        @Test func subscribersOfOneProcessShare() async throws {
            let bench = try await Bench()
            let one = try await bench.link.subscribe(to: bench.characteristic)
            let two = try await bench.link.subscribe(to: bench.characteristic)
            try await bench.value([1])
            for subscription in [one, two] {
                var values = subscription.values.makeAsyncIterator()
                #expect(await values.next() == [1])
            }
            await one.cancel()
            #expect(!bench.fake.calls.contains("StopNotify"))
            await two.cancel()
            #expect(bench.fake.calls.filter { $0 == "StartNotify" }.count == 1)
            #expect(bench.fake.calls.last == "StopNotify")
        }

        /// The peer changes its services while `StartNotify` is under way, and the answer comes late or never.
        @Test func subscribingEndsWithTheCharacteristic() async throws {
            let bench = try await Bench()
            let held = Held()
            bench.fake.on("StartNotify") { held.keep($0) }
            let (link, characteristic) = (bench.link, bench.characteristic)
            // A child, which the suite's time limit ends.
            async let error = #expect(throws: BluetoothError.self) { try await link.subscribe(to: characteristic) }
            try await bench.fake.called("StartNotify")
            // The object answers on, so that a call to it would be seen.
            try await bench.fake.signal(
                .root, "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved",
                [.objectPath(bench.path), .strings(["org.bluez.GattCharacteristic1"])])
            #expect(await error?.code == .attributeNotFound)
            let call = try #require(await held.take().first)
            call.reply()
            await link.disconnect()
            // To the radio and back: what it has sent has come.
            _ = try await bench.fake.call(call.sender, .root, "org.freedesktop.DBus.Peer", "Ping")
            #expect(bench.fake.calls.suffix(2) == ["StartNotify", "Disconnect"])
        }

        /// A paired device's link is only let go of, and what was asked of it comes about all the same.
        @Test func aSubscriptionThatComesAboutOnALinkThatWasLetGoOfIsEnded() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1, ["Connected": .bool(true), "Paired": .bool(true)])
            try await fake.addService(device, uuid: Self.service, characteristic: Self.uuid, flags: ["notify"])
            try await fake.set(device, "org.bluez.Device1", ["ServicesResolved": .bool(true)])
            let link = try await OnABus.ConnectTests.link(fake, fake.radio(), device)
            let characteristic = try #require(
                try await link.discoverServices(awaiting: Self.uuid).first?.characteristics.first)
            let held = Held()
            fake.on("StartNotify") { held.keep($0) }
            async let error = #expect(throws: BluetoothError.self) { try await link.subscribe(to: characteristic) }
            try await fake.called("StartNotify")
            await link.disconnect()
            #expect(await error?.code == .notConnected)
            #expect(fake.calls == ["StartNotify"])
            for call in await held.take() { call.reply() }
            try await fake.called("StopNotify")
        }

        @Test func aSubscriptionEndsWithItsLink() async throws {
            let bench = try await Bench()
            let subscription = try await bench.link.subscribe(to: bench.characteristic)
            try await bench.fake.set(bench.device, "org.bluez.Device1", ["Connected": .bool(false)])
            var values = subscription.values.makeAsyncIterator()
            #expect(await values.next() == nil)
        }

        @Test func anOperationEndsWithItsLink() async throws {
            let bench = try await Bench()
            let held = Held()
            bench.fake.on("WriteValue") { held.keep($0) }
            let (link, characteristic) = (bench.link, bench.characteristic)
            let write = Task {
                await #expect(throws: BluetoothError.self) {
                    try await link.write([1], to: characteristic, type: .withResponse)
                }
            }
            try await bench.fake.called("WriteValue")
            try await bench.fake.set(bench.device, "org.bluez.Device1", ["Connected": .bool(false)])
            #expect(await write.value?.code == .disconnected)
        }
    }
}
