// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import SimulatedRadio
import Testing

@testable import BlueZSimulator

/// Programs that nobody here wrote take the simulator for BlueZ.
@Suite(
    "Foreign peers", .timeLimit(.minutes(1)),
    .enabled(if: Python.isAvailable, "no Python environment: run scripts/python-env.sh"))
struct ForeignPeerTests {
    static let air = Conditions(connectionTime: .milliseconds(50), discoveryTime: .milliseconds(50))

    @Test(arguments: BehaviourProfile.all)
    func bleakJoinsAHostThatIsRegisteredByPlainDBus(_ version: BehaviourProfile) async throws {
        var profile = version
        // bleak names the service, as on the real 5.87 to its end (bluez/bluez#2282).
        profile.diesOfServiceFilters = false
        let fixture = try await Fixture(adapters: 2, profile: profile, conditions: Self.air)
        let app = try await HostApp(fixture.bus)
        let handoff = #"{"type":"handoff","protocolVersion":1,"appId":"org.example","payload":{"roomCode":"SWIFT"}}"#
        app.characteristic.onCall { call in
            call.reply()
            guard call.member == "WriteValue" else { return }
            Task { try await app.notify(Array(handoff.utf8)) }
        }
        try await app.register()
        try await app.advertise()
        let bleak = try Python.run(
            "bleak_client.py", ["--adapter", "hci1", "--app-id", "org.example"], bus: fixture.bus)
        let status = try await bleak.exit()
        #expect(status == 0, "\(bleak.errors.all)")
        #expect(bleak.lines.all == [handoff])
        let write = try await app.asked("WriteValue")
        let options = try #require(write.arguments.last?.asDictionary)
        #expect(options["mtu"] == .uint16(517))
        #expect(options["link"] == .string("LE"))
        #expect(options["device"]?.asObjectPath == fixture.simulator.radios["hci1"].map { Fixture.devicePath($0) })
        withExtendedLifetime(fixture) {}
    }

    @Test func bleakHearsOfARejectionAsAnATTError() async throws {
        let fixture = try await Fixture(adapters: 2, conditions: Self.air)
        let app = try await HostApp(fixture.bus)
        app.characteristic.onCall { call in
            if call.member == "WriteValue" {
                call.fail(name: "org.bluez.Error.Failed", message: "0x81")
            } else {
                call.reply()
            }
        }
        try await app.register()
        try await app.advertise()
        let bleak = try Python.run("bleak_client.py", ["--adapter", "hci1"], bus: fixture.bus)
        #expect(try await bleak.exit() == 3)
        withExtendedLifetime(fixture) {}
    }

    @Test func aPhoneIsServedByADbusFastHost() async throws {
        let fixture = try await Fixture()
        let host = try Python.run("gatt_server.py", ["--joins", "1", "--linger", "0.1"], bus: fixture.bus)
        _ = try await host.line(beginning: "ready")
        let phone = try await Phone(fixture.medium.addAdapter())
        let subscription = try await phone.connection.subscribe(to: phone.characteristic)
        try await phone.write(Array(#"{"type":"join_request","protocolVersion":1,"appId":"org.example"}"#.utf8))
        var values = subscription.values.makeAsyncIterator()
        let handoff = String(decoding: try #require(await values.next()), as: UTF8.self)
        #expect(handoff.contains(#""appId":"org.example""#))
        #expect(handoff.contains(#""payload":{"roomCode":"PY42"}"#))
        #expect(try await host.exit() == 0, "\(host.errors.all)")
        withExtendedLifetime(fixture) {}
    }

    @Test func twoForeignPeersMeetOnOneDaemon() async throws {
        let fixture = try await Fixture(adapters: 2, conditions: Self.air)
        let host = try Python.run("gatt_server.py", ["--adapter", "hci0"], bus: fixture.bus)
        _ = try await host.line(beginning: "ready")
        let client = try Python.run("bleak_client.py", ["--adapter", "hci1", "--app-id", "a.b"], bus: fixture.bus)
        #expect(try await client.exit() == 0, "\(client.errors.all)")
        #expect(client.lines.all.first?.contains("PY42") == true)
        host.terminate()
        #expect(try await host.exit() == 0, "\(host.errors.all)")
        withExtendedLifetime(fixture) {}
    }
}
