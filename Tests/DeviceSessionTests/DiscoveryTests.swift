// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import DeviceSession

/// From a link to what can be done over it.
@Suite(.timeLimit(.minutes(2))) struct DiscoveryTests {
    private let bench = Bench()

    /// BlueZ can say that the services are resolved before their objects are there (bluez/bluez#1489).
    @Test(arguments: [DeviceProfile.nordicUART, .anyUART])
    func aCharacteristicThatAppearsLateIsFound(profile: DeviceProfile) async throws {
        let channel = try #require(profile.channels.first)
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            bench.gadget.inject(.nextDiscoveryLacks(channel.incoming.characteristic, for: .milliseconds(500)))
            let session = try bench.session(profile)
            try await bench.connect(session)
            await session.teardown()
            await device.stop()
        }
    }

    @Test func timesOfAnyLengthAreTaken() async throws {
        let forever = Duration.seconds(Int64.max)
        var configuration = DeviceSession.Configuration()
        configuration.connectTimeout = forever
        configuration.quietWindow = forever
        configuration.turnTimeout = forever
        configuration.commandTimeout = forever
        var profile = DeviceProfile.nordicUART.speakingAT()
        profile.packetPause = .seconds(-1)
        try await bench.withSession(profile, configuration) { (session, _) async throws in
            try await session.waitUntil(.deviceInfoReady, timeout: forever)
            #expect(try await session.run("AT") == [])
            try await session.sendNoWait("AT")
            #expect(await failure { try await session.run("AT+SILENT", timeout: .seconds(-1)) }?.code == .timedOut)
        }
    }

    @Test func aDiscoveryThatFailsEndsTheLink() async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            let unresolved = BluetoothError(.timedOut, "the device's services were not resolved")
            let radio = TroubledRadio(bench.phone, .discovery(unresolved))
            let session = try DeviceSession(profile: Bench.at, radio: radio)
            let error = await failure { try await bench.connect(session) }
            #expect(error?.code == .timedOut && error?.cause == unresolved)
            // Told once the link is down, which is not the teardown's doing.
            let later = await failure { try await session.waitUntil(.connected, timeout: .seconds(10)) }
            #expect(later == error)
            #expect(error.map { session.state == .failed($0) } == true)
            #expect(bench.medium.links.isEmpty)
            #expect(await failure { try await session.run("AT") }?.code == .notConnected)
            await session.teardown()
            await device.stop()
        }
    }
}
