// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit
import Testing

@testable import nearby

/// The built program, end to end, on simulated buses.
@Suite(.timeLimit(.minutes(2))) struct ProcessTests {
    private static let payload = ["--app-id", "com.example.test", "--payload", "roomCode=SWIFT42"]

    @Test func theDemoHandsThePayloadOver() async throws {
        let demo = try RunningProgram(["demo", "--payload", "roomCode=a b", "seats:=4", "-q"])
        #expect(await demo.ended() == 0, "\(demo.errors)")
        #expect(demo.output.contains("join │ roomCode  a b"))
        #expect(demo.output.contains("join │ seats     4"))
    }

    @Test func joinPrintsTheHandoffAsJSONAndTheHostEndsAfterOne() async throws {
        let bus = try await SimulatedBus()
        let host = try RunningProgram(
            ["host", "--once", "--json", "--bus", bus.address, "--adapter", "hci0"] + Self.payload
        )
        #expect(await host.prints("serving"))
        let join = try RunningProgram(
            ["join", "--app-id", "com.example.test", "--json", "--bus", bus.address, "--adapter", "hci1"]
        )
        #expect(await join.ended() == 0, "\(join.errors)")
        let line = try JSONObject(parsing: [UInt8]((join.output.first ?? "").utf8))
        #expect(line.string("event") == "handoff")
        #expect(line.object("payload") == ["roomCode": "SWIFT42"])
        #expect(await host.ended() == 0, "\(host.errors)")
        #expect(host.output.last?.contains("delivered") == true)
        #expect(await bus.stop() == 143)
    }

    @Test(arguments: [(SIGTERM, 143), (SIGINT, 130), (SIGHUP, 129)] as [(Int32, Int32)])
    func aSignalEndsAHostAndLeavesNothingOnTheAir(signal: Int32, status: Int32) async throws {
        let bus = try await SimulatedBus()
        let host = try RunningProgram(["host", "--json", "--bus", bus.address, "--adapter", "hci0"] + Self.payload)
        #expect(await host.prints("serving"))
        let scan = ["scan", "--bus", bus.address, "--adapter", "hci1", "--timeout"]
        let before = try RunningProgram(scan + ["30s"])
        #expect(await before.prints("nearby"))
        before.send(SIGINT)
        #expect(await before.ended() == 130)
        host.send(signal)
        #expect(await host.ended() == status, "\(host.errors)")
        let after = try RunningProgram(scan + ["1s"])
        #expect(await after.ended() == ExitCode.nothingFound.rawValue)
        #expect(after.errors == ["nearby: no host was heard", "`nearby scan --all` lists other devices, too."])
        #expect(await bus.stop() == 143)
    }

    @Test func theWrongAppIsNothingFoundAndSaysSo() async throws {
        let bus = try await SimulatedBus()
        let host = try RunningProgram(["host", "--json", "--bus", bus.address, "--adapter", "hci0"] + Self.payload)
        #expect(await host.prints("serving"))
        let join = try RunningProgram(
            ["join", "-a", "com.example.other", "--json", "--timeout", "3s", "--bus", bus.address, "--adapter", "hci1"]
        )
        #expect(await join.ended() == ExitCode.nothingFound.rawValue)
        let line = try JSONObject(parsing: [UInt8]((join.output.last ?? "").utf8))
        #expect(line.string("code") == "nothingFound")
        #expect(line.int("otherApp") == 1)
        host.send(SIGTERM)
        #expect(await host.ended() == 143)
        #expect(await bus.stop() == 143)
    }

    @Test func aReaderThatGoesAwayEndsTheProgramQuietly() async throws {
        let bus = try await SimulatedBus()
        let host = try RunningProgram(["host", "--json", "--bus", bus.address, "--adapter", "hci0"] + Self.payload)
        #expect(await host.prints("serving"))
        let script = #""$0" scan --json --bus "$1" --adapter hci1 | head -n 1; exit "${PIPESTATUS[0]}""#
        let scan = try RunningProgram(shell: script, [bus.address])
        #expect(await scan.ended() == ExitCode.outputClosed.rawValue)
        #expect(scan.errors.isEmpty)
        host.send(SIGTERM)
        #expect(await host.ended() == 143)
        #expect(await bus.stop() == 143)
    }

    /// Else the connection to the bus would get the number of standard output, and the lines go there.
    @Test func withoutAStandardOutputItSaysThatItCannotWrite() async throws {
        let bus = try await SimulatedBus()
        let arguments = ["host", "--json", "--bus", bus.address, "--adapter", "hci0"] + Self.payload
        let host = try RunningProgram(shell: #"exec "$0" "$@" <&- >&-"#, arguments)
        #expect(await host.ended() == ExitCode.outputFailed.rawValue)
        #expect(host.errors.contains("nearby: the output cannot be written"), "\(host.errors)")
        #expect(await bus.stop() == 143)
    }

    @Test(arguments: [
        (["scan", "--bus", "unix:path=/nonexistent/bus"], ExitCode.serviceUnavailable),
        (["simulate", "--bus", "unix:path=/nonexistent/bus"], .serviceUnavailable),
        (["host", "-a", "a", "-p", "k=v", "--bus", "unix:path=/nonexistent/bus"], .serviceUnavailable),
        (["join", "-a", "a", "--bus", "unix:path=/nonexistent/bus"], .serviceUnavailable),
        (["join", "-a", "a", "--bus", "unix:path=/nonexistent/bus", "--timeout", "300ms"], .serviceUnavailable),
        // The time is up before the patience with the bus is: still no empty room.
        (["scan", "--bus", "unix:path=/nonexistent/bus", "--timeout", "300ms"], .serviceUnavailable),
        (["host", "-a", "a", "-p", "k=v", "--bus", "unix:path=/nonexistent/bus", "-t", "300ms"], .serviceUnavailable),
        (["join", "-a", "a", "--select", "manual"], .usage),
        (["host", "-a", "a", "--payload-file", "/nonexistent"], .unreadableFile),
        (["host", "-a", "a", "--payload-file", "/dev/zero"], .unfitPayload),
        (
            ["host", "-a", "a", "--profile", "basic", "-p", "k=" + String(repeating: "x", count: 600)], .unfitPayload
        ),
        (["host", "-a", "a", "-p", "k=v", "--profile", "basic", "--passcode", "482913"], .usage),
        (["join", "-a", "a", "--profile", "basic", "--passcode", "482913"], .usage),
        (["join", "-a", "a", "--passcode="], .usage),
        (["join", "-a", "a", "--output", "/nonexistent"], .usage),
        (["host", "-a", "a", "--attach", "/nonexistent"], .unreadableFile),
    ])
    func eachFailureHasItsExitCode(arguments: [String], code: ExitCode) async throws {
        let program = try RunningProgram(arguments)
        #expect(await program.ended() == code.rawValue, "\(program.errors)")
        #expect(program.output.isEmpty)
        #expect(program.errors.contains { $0.hasPrefix("nearby") }, "\(program.errors)")
    }

    @Test func anAdapterThatIsNotThereIsNoAdapter() async throws {
        let bus = try await SimulatedBus()
        let scan = try RunningProgram(["scan", "--bus", bus.address, "--adapter", "hci7"])
        #expect(await scan.ended() == ExitCode.noAdapter.rawValue, "\(scan.errors)")
        #expect(await bus.stop() == 143)
    }

    @Test func aSecondOrgBluezOnABusIsRefused() async throws {
        let bus = try await SimulatedBus()
        let second = try RunningProgram(["simulate", "--bus", bus.address])
        #expect(await second.ended() == ExitCode.serviceUnavailable.rawValue)
        #expect(await bus.stop() == 143)
    }

    @Test(arguments: [("system", "DBUS_SYSTEM_BUS_ADDRESS"), ("session", "DBUS_SESSION_BUS_ADDRESS")])
    func theBusesOfTheSystemAndOfTheSessionHaveTheirNames(name: String, variable: String) async throws {
        let bus = try await SimulatedBus()
        let script = #"exec env "\#(variable)=$1" "$0" scan --bus \#(name) --adapter hci1 --timeout 2s"#
        let scan = try RunningProgram(shell: script, [bus.address])
        #expect(await scan.ended() == ExitCode.nothingFound.rawValue, "\(scan.errors)")
        #expect(await bus.stop() == 143)
    }

    @Test func helpThatCannotBeWrittenSaysSo() async throws {
        let help = try RunningProgram(shell: #"exec "$0" --help > /dev/full"#, [])
        #expect(await help.ended() == ExitCode.outputFailed.rawValue)
        #expect(help.errors == ["nearby: the output cannot be written"])
    }

    @Test func aCommandThatHasNothingToDoReadsNoMoreThanItsArguments() async throws {
        let version = try RunningProgram(["--version"])
        #expect(await version.ended() == 0)
        #expect(version.output == ["nearby \(Program.version)"])
        let wrong = try RunningProgram(shell: #"exec "$0" host -a a -p $'k=\xff'"#, [])
        #expect(await wrong.ended() == ExitCode.usage.rawValue)
        #expect(wrong.errors.first == "nearby: argument 5, “k=�”, is not valid UTF-8")
    }
}
