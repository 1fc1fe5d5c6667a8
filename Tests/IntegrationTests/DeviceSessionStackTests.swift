// SPDX-License-Identifier: MIT

import BlueZ
import BlueZSimulator
import BluetoothLE
import DBus
import DeviceSession
import SimulatedRadio
import Testing

/// A device session across a real bus: BlueZ's room, D-Bus, a simulated bluetoothd, and a device in the same air.
@Suite(.timeLimit(.minutes(2))) struct DeviceSessionStackTests {
    /// What may go wrong, and does.
    enum Blow: CaseIterable {
        case none, linkDropped, serviceRestarted, adapterOffAndOn
    }

    private static let outgoing = LocalCharacteristicID(service: 0, characteristic: 1)
    private static let channel = DeviceProfile.ffe5.channels[2]

    /// A UART that answers each line with itself and `OK`.
    private func serve(on radio: SimulatedRadio) async throws -> (any PeripheralSession, Task<Void, Never>) {
        let channel = Self.channel
        let uart = LocalService(
            0xFFE5,
            characteristics: [
                LocalCharacteristic(channel.outgoing.characteristic, [.write, .writeWithoutResponse]),
                LocalCharacteristic(channel.incoming.characteristic, .notify),
            ]
        )
        let battery = LocalService(0x180F, characteristics: [LocalCharacteristic(0x2A19, [.read, .notify])])
        let session = try await radio.serve(
            [uart, battery], advertising: AdvertisementRequest(localName: "Meter", serviceUUIDs: [0xFFE5]))
        let task = Task {
            for await event in session.events {
                switch event {
                case .write(let request):
                    await session.respond(to: request.id, with: .accept)
                    try? await session.notify(request.value + Array("OK\r\n".utf8), on: Self.outgoing, to: nil)
                case .read(let request): await session.respond(to: request.id, with: .value([55]))
                default: break
                }
            }
        }
        return (session, task)
    }

    @Test(arguments: Blow.allCases)
    func aConversationOutlivesWhatHappens(blow: Blow) async throws {
        let bus = try await PrivateBus()
        let medium = SimulatedMedium(clock: ContinuousClock(), conditions: Conditions(rssi: -44))
        let simulator = try await BlueZSimulator.start(on: bus.busAddress, medium: medium)
        let radio = BlueZRadio(BlueZConfiguration(bus: bus.address))
        let gadget = medium.addAdapter(name: "gadget")
        let (device, serving) = try await serve(on: gadget)
        let session = try DeviceSession(
            profile: DeviceProfile.ffe5.speakingAT(), radio: radio,
            configuration: .init(reconnection: .attempts(20, initialPause: .milliseconds(200), factor: 1)))

        try await session.startScan(ScanRules(namePrefix: "Met", minimumRSSI: -60))
        for await results in session.scanResultUpdates() where !results.isEmpty { break }
        try await session.connect(id: try #require(session.scanResults.first).id)
        try await session.waitUntil(.commandReady, timeout: .seconds(20))
        #expect(try await session.run("AT+ONE") == [])
        try await session.waitUntil(.deviceInfoReady, timeout: .seconds(20))
        #expect(session.facts.batteryLevel == 55)

        let events = session.events
        let phone = try #require(simulator.radios["hci0"])
        switch blow {
        case .none: break
        case .linkDropped: medium.drop(between: phone, and: gadget)
        case .serviceRestarted: try await simulator.restart(downFor: .milliseconds(300))
        case .adapterOffAndOn:
            await simulator.setPowered(false, adapter: "hci0")
            await simulator.setPowered(true, adapter: "hci0")
        }
        if blow != .none {
            for await event in events where event == .connectionStateChanged(.connected) { break }
            try await session.waitUntil(.commandReady, timeout: .seconds(60))
        }
        #expect(try await session.run("AT+TWO") == [])
        await session.teardown()
        await radio.shutdown()
        #expect(medium.links.isEmpty)
        await device.stop()
        serving.cancel()
        await simulator.stop()
        bus.stop()
    }
}
