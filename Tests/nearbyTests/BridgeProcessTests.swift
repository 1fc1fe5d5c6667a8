// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit
import Testing

@testable import nearby

/// `nearby bridge` with a client that shares no code with us, and with `--radio bridge:`.
@Suite(.timeLimit(.minutes(3))) struct BridgeProcessTests {
    private static let app = ["--app-id", "com.example.test"]
    private static let hasPython = access("/usr/bin/python3", X_OK) == 0

    /// The bridge on one adapter of a simulated BlueZ, and its port.
    private func bridge(_ bus: SimulatedBus, _ adapter: String) async throws -> (RunningProgram, port: String) {
        try await bridge(["--bus", bus.address, "--adapter", adapter])
    }

    private func bridge(_ options: [String]) async throws -> (RunningProgram, port: String) {
        let program = try RunningProgram(["bridge", "--json", "--listen", "127.0.0.1:0"] + options)
        let isReady = await program.prints("bridging")
        try #require(isReady, "\(program.errors)")
        let line = try JSONObject(parsing: [UInt8]((program.output.first ?? "").utf8))
        let port = try #require(line.string("listen")?.split(separator: ":").last)
        return (program, String(port))
    }

    /// The Android-style client of Tests/Python.
    private func emulator(_ port: String, _ words: [String], from file: String = #filePath) throws -> RunningProgram {
        let tests = "/" + file.split(separator: "/").dropLast(2).joined(separator: "/")
        let options = ["--port", port, "--timeout", "40", "--disorder", "20"]
        return try RunningProgram(
            shell: #"exec /usr/bin/python3 "$@""#, [tests + "/Python/bridge_client.py"] + options + words)
    }

    @Test(.enabled(if: hasPython), arguments: ["auto", "basic"])
    func anEmulatorJoinsOurHost(profile: String) async throws {
        let bus = try await SimulatedBus()
        let (bridge, port) = try await bridge(bus, "hci1")
        let host = try RunningProgram(
            ["host", "--once", "--json", "--bus", bus.address, "--adapter", "hci0", "--profile", profile]
                + Self.app + ["--payload", "roomCode=SWIFT42"])
        #expect(await host.prints("serving"))
        let emulator = try emulator(port, ["join"] + Self.app)
        #expect(await emulator.ended() == 0, "\(emulator.errors)")
        let handoff = try JSONObject(parsing: [UInt8]((emulator.output.first ?? "").utf8))
        #expect(handoff.string("type") == "handoff" && handoff.object("payload") == ["roomCode": "SWIFT42"])
        #expect(await host.ended() == 0, "\(host.errors)")
        bridge.send(SIGTERM)
        #expect(await bridge.ended() == 143, "\(bridge.errors)")
        #expect(await bus.stop() == 143)
    }

    @Test(.enabled(if: hasPython)) func ourClientJoinsAnEmulatorThatHosts() async throws {
        let bus = try await SimulatedBus()
        let (bridge, port) = try await bridge(bus, "hci0")
        let emulator = try emulator(port, ["host", "--payload", "roomCode=ANDROID", "--joins", "2"] + Self.app)
        #expect(await emulator.prints("ready"))
        for _ in 1...2 {
            let join = try RunningProgram(["join", "--json", "--bus", bus.address, "--adapter", "hci1"] + Self.app)
            #expect(await join.ended() == 0, "\(join.errors)")
            let handoff = try JSONObject(parsing: [UInt8]((join.output.first ?? "").utf8))
            #expect(handoff.object("payload") == ["roomCode": "ANDROID"])
            #expect(handoff.string("security") == "plaintext")
        }
        #expect(await emulator.ended() == 0, "\(emulator.errors)")
        bridge.send(SIGTERM)
        #expect(await bridge.ended() == 143, "\(bridge.errors)")
        #expect(await bus.stop() == 143)
    }

    /// Two emulators in one room.
    @Test(.enabled(if: hasPython)) func emulatorsMeetOverASimulatedRadio() async throws {
        let (bridge, port) = try await bridge(["--radio", "simulated"])
        let host = try emulator(port, ["host", "--payload", "a=b"] + Self.app)
        #expect(await host.prints("ready"))
        let join = try emulator(port, ["join"] + Self.app)
        #expect(await join.ended() == 0, "\(join.errors)")
        #expect(await host.ended() == 0, "\(host.errors)")
        bridge.send(SIGINT)
        #expect(await bridge.ended() == 130)
    }

    @Test func hostAndJoinMeetThroughBridges() async throws {
        let bus = try await SimulatedBus()
        let (first, firstPort) = try await bridge(["--bus", bus.address, "--adapter", "hci0", "--token", "secret"])
        let (second, secondPort) = try await bridge(bus, "hci1")
        let host = try RunningProgram(
            ["host", "--once", "--json", "--radio", "bridge:127.0.0.1:\(firstPort)", "--token", "secret"]
                + Self.app + ["--payload", "roomCode=SWIFT42", "--passcode", "482913"])
        #expect(await host.prints("serving"), "\(host.errors)")
        #expect(try first.commandLine().contains("secret") == false)
        let join = try RunningProgram(
            ["join", "--json", "--radio", "bridge:127.0.0.1:\(secondPort)", "--passcode", "482913"] + Self.app)
        #expect(await join.ended() == 0, "\(join.errors)")
        #expect(join.output.last?.contains("authenticated") == true)
        #expect(await host.ended() == 0, "\(host.errors)")
        for bridge in [first, second] {
            bridge.send(SIGTERM)
            #expect(await bridge.ended() == 143, "\(bridge.errors)")
        }
        #expect(await bus.stop() == 143)
    }

    @Test func aBridgeThatIsNotThereIsNamed() async throws {
        let join = try RunningProgram(["join", "--radio", "bridge:127.0.0.1:1"] + Self.app)
        #expect(await join.ended() == ExitCode.serviceUnavailable.rawValue)
        #expect(join.errors.contains { $0.contains("the bridge at 127.0.0.1:1 cannot be reached") })
    }

    @Test func anAddressThatOthersReachNeedsAToken() async throws {
        let bridge = try RunningProgram(["bridge", "--radio", "simulated", "--listen", "0.0.0.0:0"])
        #expect(await bridge.ended() == ExitCode.usage.rawValue)
        #expect(bridge.errors.contains { $0.contains("needs --token") })
        let folder = try TemporaryFolder()
        let file = try folder.write("token", Array("secret\n".utf8))
        let guarded = try RunningProgram(
            ["bridge", "--radio", "simulated", "--listen", "0.0.0.0:0", "--token-file", file])
        #expect(await guarded.prints("listening"), "\(guarded.errors)")
        guarded.send(SIGTERM)
        #expect(await guarded.ended() == 143)
        #expect(guarded.errors.contains { $0.hasPrefix("warning: the token") }, "\(guarded.errors)")
        #expect((guarded.errors + guarded.output).allSatisfy { !$0.contains("secret") })
    }

    @Test func theEnvironmentsBridgeIsUsedWhereThereIsNoAdapter() async throws {
        let (bridge, port) = try await bridge(["--radio", "simulated"])
        let scan = try RunningProgram(
            shell: "NEARBY_BRIDGE=127.0.0.1:\(port) DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nowhere exec \"$0\" \"$@\"",
            ["scan", "--timeout", "1s"])
        #expect(await bridge.prints("clientConnected"))
        #expect(await scan.ended() == ExitCode.nothingFound.rawValue, "\(scan.errors)")
        bridge.send(SIGTERM)
        #expect(await bridge.ended() == 143)
    }

    @Test(arguments: [
        ("host -a a -p k=v --radio wlan", "--radio: “wlan” is not accepted; expected bluez, or bridge:HOST:PORT"),
        ("scan --radio bridge:", "--radio: “bridge:” is not accepted"),
        ("scan --radio bridge:h:0", "--radio: “bridge:h:0” is not accepted"),
        ("scan --radio bridge:h:1 --adapter hci0", "--radio bridge and --adapter exclude each other"),
        ("scan --token x", "a token is for --radio bridge:HOST:PORT"),
        ("bridge --radio bridge:h:1", "--radio: “bridge:h:1” is not accepted; expected bluez or simulated"),
        ("bridge --radio simulated --adapter hci0", "--radio simulated and --adapter exclude each other"),
        ("bridge --listen h:x", "--listen: “h:x” is not accepted; expected HOST:PORT"),
        ("bridge --token-file a --token b", "--token and --token-file exclude each other"),
    ])
    func wrongOptionsAreRefused(words: String, message: String) {
        let failure = #expect(throws: Failure.self) { try Invocation(words.split(separator: " ").map(String.init)) }
        #expect(failure?.message.hasPrefix(message) == true, "\(failure?.message ?? "")")
        #expect(failure?.exitCode == .usage)
    }
}
