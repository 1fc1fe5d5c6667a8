// SPDX-License-Identifier: MIT

import BlueZSimulator
import BluetoothLE
import DBus
import DeviceSession
import Glibc
import NearbyDiscoveryKit
import SimulatedRadio
import Testing

@testable import nearby

/// `nearby device`, against the device of `nearby simulate --device`, over a simulated BlueZ. One after another: each is
/// several processes, and other suites run beside this one.
@Suite(.serialized, .timeLimit(.minutes(2))) struct DeviceCommandTests {
    private static let uart = "nearby UART"

    /// How the program gets to the adapter.
    enum Way: CaseIterable { case bus, bridge }

    /// The device's air, and a bridge in front of it if there is to be one.
    private struct Air {
        let options: [String]
        private let bus: SimulatedBus
        private let bridge: RunningProgram?

        init(_ way: Way = .bus) async throws {
            bus = try await SimulatedBus(device: true)
            let adapter = ["--bus", bus.address, "--adapter", "hci0"]
            guard way == .bridge else {
                options = adapter
                bridge = nil
                return
            }
            let program = try RunningProgram(["bridge", "--json", "--listen", "127.0.0.1:0"] + adapter)
            let isReady = await program.prints("bridging")
            try #require(isReady, "\(program.errors)")
            let line = try JSONObject(parsing: [UInt8]((program.output.first ?? "").utf8))
            options = ["--radio", "bridge:\(try #require(line.string("listen")))"]
            bridge = program
        }

        func stop() async {
            bridge?.send(15)
            if let bridge { #expect(await bridge.ended() == 143, "\(bridge.errors)") }
            #expect(await bus.stop() == 143)
        }
    }

    private func json(_ lines: [String]) throws -> [JSONObject] {
        try lines.map { try JSONObject(parsing: [UInt8]($0.utf8)) }
    }

    @Test(arguments: Way.allCases) func aScanFindsTheDeviceByItsNameAndService(way: Way) async throws {
        let air = try await Air(way)
        let service = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
        let scan = try RunningProgram(
            ["device", "scan", "--json", "--name", "nearby", "--service", service, "-t", "20s"] + air.options)
        #expect(await scan.prints("discovered"))
        let line = try json(scan.output)[0]
        #expect(line.string("name") == Self.uart)
        #expect(line.int("rssi") == -50)
        scan.send(2)
        #expect(await scan.ended() == 130)
        let other = try RunningProgram(["device", "scan", "--name", "else", "-t", "1s"] + air.options)
        #expect(await other.ended() == ExitCode.nothingFound.rawValue)
        await air.stop()
    }

    @Test(arguments: Way.allCases) func infoPrintsTheFacts(way: Way) async throws {
        let air = try await Air(way)
        let info = try RunningProgram(["device", "info", "-d", Self.uart, "--json"] + air.options)
        #expect(await info.ended() == 0, "\(info.errors)")
        let line = try json(info.output)[0]
        #expect(line.int("batteryLevel") == 87)
        #expect(line.string("manufacturer") == "NearbyDiscoveryKit")
        let address = try #require(line.string("address"))
        let again = try RunningProgram(["device", "info", "-d", address.lowercased()] + air.options)
        #expect(await again.ended() == 0, "\(again.errors)")
        #expect(again.output.contains("battery        87 %"))
        #expect(again.output.contains("firmware       \(Program.version)"))
        await air.stop()
    }

    @Test(arguments: Way.allCases) func servicesAreNamed(way: Way) async throws {
        let air = try await Air(way)
        let services = try RunningProgram(["device", "services", "-d", Self.uart] + air.options)
        #expect(await services.ended() == 0, "\(services.errors)")
        #expect(services.output.contains("6E400001-B5A3-F393-E0A9-E50E24DCCA9E  Nordic UART"))
        #expect(services.output.contains("  2A19  Battery Level  read, notify"))
        await air.stop()
    }

    @Test(arguments: Way.allCases) func aConsoleHoldsAConversation(way: Way) async throws {
        let air = try await Air(way)
        let script = #"printf 'hello\nPING\nVERSION\n' | "$0" device console "$@""#
        let console = try RunningProgram(shell: script, ["-d", Self.uart] + air.options)
        #expect(await console.ended() == 0, "\(console.errors)")
        #expect(console.output == ["hello", "PONG", Program.version])
        #expect(console.errors == ["Connected to \(Self.uart)."])
        // Nothing is left behind: the device can be had again.
        let again = try RunningProgram(shell: script, ["--json", "-q", "-d", Self.uart] + air.options)
        #expect(await again.ended() == 0, "\(again.errors)")
        #expect(
            try json(again.output).map { $0.string("text") ?? $0.string("event") } == [
                "connected", "hello", "PONG", Program.version,
            ])
        await air.stop()
    }

    @Test(
        arguments: [
            (["device", "console", "-d", "nearby UART", "--profile", "ffe0"], ExitCode.linkFailed),
            (["device", "info", "-d", "nobody", "-t", "1s"], .nothingFound),
        ], Way.allCases)
    func whatDoesNotWorkSaysSo(_ words: ([String], ExitCode), way: Way) async throws {
        let air = try await Air(way)
        let program = try RunningProgram(words.0 + air.options)
        #expect(await program.ended() == words.1.rawValue)
        #expect(program.errors.contains { $0.hasPrefix("nearby: ") }, "\(program.errors)")
        await air.stop()
    }

    @Test func aDeviceThatGoesAwayEndsTheConsole() async throws {
        let bus = try await SimulatedBus(device: true)
        let script = #"{ echo hello; sleep 60; } | "$0" device console "$@"; exit "${PIPESTATUS[1]}""#
        let console = try RunningProgram(
            shell: script, ["-d", Self.uart, "--json", "--bus", bus.address, "--adapter", "hci0"])
        #expect(await console.prints("hello"))
        #expect(await bus.stop() == 143)
        #expect(await console.prints("disconnected"))
        #expect(try json(console.output).last?.string("event") == "error")
    }

    @Test func aWaitForBluetoothIsAnEvent() async throws {
        let bus = try await PrivateBus()
        let medium = SimulatedMedium(clock: ContinuousClock())
        let simulator = try await BlueZSimulator.start(on: bus.busAddress, medium: medium)
        let device = try await SimulatedUART(in: medium)
        // The input ends at once.
        let console = try RunningProgram(
            ["device", "console", "-d", Self.uart, "--json", "--reconnect", "1", "--linger", "100s"]
                + ["--bus", bus.address])
        #expect(await console.prints("connected"))
        await simulator.setPowered(false, adapter: "hci0")
        #expect(await console.prints("paused"))
        await simulator.setPowered(true, adapter: "hci0")
        #expect(await console.prints("resumed"))
        console.send(SIGINT)
        #expect(await console.ended() == ExitCode.interrupted.rawValue)
        let paused = try json(console.output).first { $0.string("event") == "paused" }
        #expect(paused?.string("code") == "poweredOff")
        await device.stop()
        await simulator.stop()
        bus.stop()
    }

    @Test(arguments: [
        ("device info", "--device is missing"), ("device info -d", "--device: needs a value"),
        ("device console -d a --line-end x", "--line-end: “x” is not accepted; expected crlf, cr, lf or none"),
        ("device console -d a --xor 5", "--xor: “5” is not accepted"), ("device console -d a --xor zz", "--xor: “zz”"),
        ("device console -d a --write FFE1", "--write and --notify belong together"),
        ("device console -d a --profile x", "--profile: “x” is not accepted; expected auto, nordic, ffe0 or ffe5"),
        ("device console -d a --reconnect 101", "--reconnect: “101”"), ("device scan --service x", "--service: “x”"),
        ("device scan --sort best", "--sort: “best” is not accepted; expected signal, name or seen"),
        ("device scan --address 1", "--address: “1” is not accepted"),
    ])
    func refusesWithTheOptionsName(words: String, message: String) {
        let failure = #expect(throws: Failure.self) { try Invocation(words.split(separator: " ").map(String.init)) }
        #expect(failure?.message.hasPrefix(message) == true, "\(failure?.message ?? "")")
        #expect(failure?.exitCode == .usage)
    }

    @Test func aStrangersTextIsHarmless() {
        var facts = DeviceFacts()
        facts.manufacturer = "\u{1B}[2J"
        #expect(DeviceReport.lines(facts, of: nil) == ["manufacturer   \\u{1b}[2J"])
    }

    @Test(arguments: [("180F", "Battery"), ("2A29", "Manufacturer Name String"), ("0001", nil)])
    func uuidsHaveNames(text: String, name: String?) throws {
        let uuid = try #require(BluetoothUUID(text))
        #expect(UUIDNames.name(uuid) == name)
    }
}
