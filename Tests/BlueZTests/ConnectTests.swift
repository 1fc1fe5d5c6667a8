// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

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

        /// Before 5.79 `Disconnect` is answered first, and `Connected` told when bluetoothd is idle.
        @Test func whoConnectsAgainAtOnceIsNotGivenTheLinkOfBefore() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let radio = fake.radio()
            let link = try await Self.link(fake, radio, device)
            fake.on("Disconnect") { $0.reply() }
            await link.disconnect()
            _ = try await radio.connect(to: PeerIdentifier(device.string), timeout: .seconds(10))
            #expect(fake.calls == ["Connect", "Disconnect", "Connect"])
        }

        /// Rules 20, 23: one branch of bluetoothd answers success without a link; what may still come is nobody's.
        @Test func aLinkThatIsNotShownIsCalledOff() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let error = await #expect(throws: BluetoothError.self) {
                try await fake.radio().connect(to: PeerIdentifier(device.string), timeout: .seconds(10))
            }
            #expect(error?.code == .connectionFailed)
            #expect(fake.calls == ["Connect", "Disconnect"])
        }

        @Test func anAttemptAtADeviceThatGoesIsCalledOff() async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1)
            let held = Held()
            fake.on("Connect") { held.keep($0) }
            let radio = fake.radio()
            let attempt = Task { try await radio.connect(to: PeerIdentifier(device.string), timeout: .seconds(10)) }
            try await fake.called("Connect")
            // The object answers on, as bluetoothd's does for whom only our view has no room.
            try await fake.signal(
                .root, "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved",
                [.objectPath(device), .strings(["org.bluez.Device1"])])
            let error = await #expect(throws: BluetoothError.self) { try await attempt.value }
            #expect(error?.code == .peerNotFound)
            #expect(fake.calls == ["Connect", "Disconnect"])
        }

        /// `Disconnect` would take its user's music down with it. Not paired, it is what a killed program has left.
        @Test(arguments: [true, false]) func aPairedDeviceThatWasConnectedBeforeStaysSo(isPaired: Bool) async throws {
            let fake = try await FakeBlueZ()
            let device = try await fake.addDevice(1, ["Connected": .bool(true), "Paired": .bool(isPaired)])
            let link = try await Self.link(fake, fake.radio(), device)
            await link.disconnect()
            #expect(await link.disconnection() == .local)
            #expect(fake.calls == (isPaired ? [] : ["Disconnect"]))
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
            try await fake.called("Connect")
            task.cancel()
            #expect(await task.value?.code == .cancelled)
            #expect(fake.calls == ["Connect", "Disconnect"])
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
            try await fake.called("Disconnect")
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
