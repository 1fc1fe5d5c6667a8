// SPDX-License-Identifier: MIT

import DeviceSession
import NearbyDiscoveryKit
import Testing

@testable import nearby

/// `nearby device`, against the device of `nearby simulate --device`, over a simulated BlueZ. One after another: each is
/// several processes, and other suites run beside this one.
@Suite(.serialized, .timeLimit(.minutes(2))) struct DeviceCommandTests {
    private static let uart = "nearby UART"

    private func options(_ bus: SimulatedBus) -> [String] { ["--bus", bus.address, "--adapter", "hci0"] }

    private func json(_ lines: [String]) throws -> [JSONObject] {
        try lines.map { try JSONObject(parsing: [UInt8]($0.utf8)) }
    }

    @Test func aScanFindsTheDeviceByItsNameAndService() async throws {
        let bus = try await SimulatedBus(device: true)
        let service = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
        let scan = try RunningProgram(
            ["device", "scan", "--json", "--name", "nearby", "--service", service, "-t", "20s"] + options(bus))
        #expect(await scan.prints("discovered"))
        let line = try json(scan.output)[0]
        #expect(line.string("name") == Self.uart)
        #expect(line.int("rssi") == -50)
        scan.send(2)
        #expect(await scan.ended() == 130)
        let other = try RunningProgram(["device", "scan", "--name", "else", "-t", "1s"] + options(bus))
        #expect(await other.ended() == ExitCode.nothingFound.rawValue)
        #expect(await bus.stop() == 143)
    }

    @Test func infoPrintsTheFacts() async throws {
        let bus = try await SimulatedBus(device: true)
        let info = try RunningProgram(["device", "info", "-d", Self.uart] + options(bus))
        #expect(await info.ended() == 0, "\(info.errors)")
        #expect(info.output.contains("battery        87 %"))
        #expect(info.output.contains("firmware       \(Program.version)"))
        let again = try RunningProgram(["device", "info", "-d", Self.uart, "--json"] + options(bus))
        #expect(await again.ended() == 0, "\(again.errors)")
        let line = try json(again.output)[0]
        #expect(line.int("batteryLevel") == 87)
        #expect(line.string("manufacturer") == "NearbyDiscoveryKit")
        #expect(await bus.stop() == 143)
    }

    @Test func servicesAreNamed() async throws {
        let bus = try await SimulatedBus(device: true)
        let services = try RunningProgram(["device", "services", "-d", Self.uart] + options(bus))
        #expect(await services.ended() == 0, "\(services.errors)")
        #expect(services.output.contains("6E400001-B5A3-F393-E0A9-E50E24DCCA9E  Nordic UART"))
        #expect(services.output.contains("  2A19  Battery Level  read, notify"))
        #expect(await bus.stop() == 143)
    }

    @Test func aConsoleHoldsAConversation() async throws {
        let bus = try await SimulatedBus(device: true)
        let script = #"printf 'hello\nPING\nVERSION\n' | "$0" device console "$@""#
        let console = try RunningProgram(shell: script, ["-d", Self.uart] + options(bus))
        #expect(await console.ended() == 0, "\(console.errors)")
        #expect(console.output == ["hello", "PONG", Program.version])
        #expect(console.errors == ["Connected to \(Self.uart)."])
        // Nothing is left behind: the device can be had again.
        let again = try RunningProgram(shell: script, ["--json", "-q", "-d", Self.uart] + options(bus))
        #expect(await again.ended() == 0, "\(again.errors)")
        #expect(
            try json(again.output).map { $0.string("text") ?? $0.string("event") } == [
                "connected", "hello", "PONG", Program.version,
            ])
        #expect(await bus.stop() == 143)
    }

    @Test(arguments: [
        (["device", "console", "-d", "nearby UART", "--profile", "ffe0"], ExitCode.linkFailed),
        (["device", "info", "-d", "nobody", "-t", "1s"], .nothingFound),
    ])
    func whatDoesNotWorkSaysSo(arguments: [String], code: ExitCode) async throws {
        let bus = try await SimulatedBus(device: true)
        let program = try RunningProgram(arguments + options(bus))
        #expect(await program.ended() == code.rawValue)
        #expect(program.errors.contains { $0.hasPrefix("nearby: ") }, "\(program.errors)")
        #expect(await bus.stop() == 143)
    }

    @Test func aDeviceThatGoesAwayEndsTheConsole() async throws {
        let bus = try await SimulatedBus(device: true)
        let script = #"{ echo hello; sleep 60; } | "$0" device console "$@"; exit "${PIPESTATUS[1]}""#
        let console = try RunningProgram(shell: script, ["-d", Self.uart, "--json"] + options(bus))
        #expect(await console.prints("hello"))
        #expect(await bus.stop() == 143)
        #expect(await console.prints("disconnected"))
        #expect(try json(console.output).last?.string("event") == "error")
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
