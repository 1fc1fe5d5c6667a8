// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit
import Testing

@testable import nearby

/// Passcodes and files with the built program, end to end, on simulated buses.
@Suite(.timeLimit(.minutes(2))) struct PasscodeProcessTests {
    private static let passcode = "48291357"

    private func host(_ bus: SimulatedBus, _ words: String...) throws -> RunningProgram {
        try RunningProgram(
            ["host", "--json", "--bus", bus.address, "--adapter", "hci0", "--app-id", "com.example.test"] + words)
    }

    private func joinWords(_ bus: SimulatedBus) -> [String] {
        ["join", "--json", "--bus", bus.address, "--adapter", "hci1", "--app-id", "com.example.test"]
    }

    @Test func aFileGoesOverSealedAndItsPasscodeIsNowhereToBeSeen() async throws {
        let folder = try TemporaryFolder()
        let bytes = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let file = try folder.write("plan.bin", bytes)
        let code = try folder.write("code", [UInt8]("\(Self.passcode)\n".utf8))
        let target = try TemporaryFolder()
        let bus = try await SimulatedBus()
        let host = try host(bus, "--once", "-v", "--attach", file, "--passcode-file", code)
        #expect(await host.prints("serving"), "\(host.errors)")
        let join = try RunningProgram(
            shell: #"NEARBY_PASSCODE=\#(Self.passcode) exec "$0" "$@""#,
            joinWords(bus) + ["-v", "--output", target.path])
        #expect(await join.ended() == 0, "\(join.errors)")
        #expect(await host.ended() == 0, "\(host.errors)")
        #expect(target.names == ["plan.bin"])
        #expect(target.read("plan.bin") == bytes)
        #expect(join.output.contains { $0.contains(#""security":"authenticated""#) })
        for line in host.output + host.errors + join.output + join.errors { #expect(!line.contains(Self.passcode)) }
        #expect(await bus.stop() == 143)
    }

    @Test func anOptionsPasscodeIsTakenOutOfTheProcessListing() async throws {
        let bus = try await SimulatedBus()
        let host = try host(bus, "--payload", "a=1", "--passcode", Self.passcode)
        #expect(await host.prints("serving"), "\(host.errors)")
        let listed = try host.commandLine()
        #expect(listed.contains("--passcode") && !listed.contains(Self.passcode))
        host.send(SIGTERM)
        #expect(await host.ended() == 143)
        _ = await bus.stop()
    }

    @Test func withoutAPasscodeOrWithAWrongOneTheExitCodeSaysSo() async throws {
        let bus = try await SimulatedBus()
        let host = try host(bus, "--payload", "a=1", "--passcode", Self.passcode)
        #expect(await host.prints("serving"), "\(host.errors)")
        let without = try RunningProgram(joinWords(bus))
        #expect(await without.ended() == ExitCode.securityRequired.rawValue, "\(without.errors)")
        let wrong = try RunningProgram(shell: #"echo 11111111 | "$0" "$@""#, joinWords(bus) + ["--passcode", "-"])
        #expect(await wrong.ended() == ExitCode.wrongPasscode.rawValue, "\(wrong.errors)")
        #expect(wrong.output.contains { $0.contains(#""code":"wrongPasscode""#) })
        let right = try RunningProgram(
            shell: #"echo \#(Self.passcode) | "$0" "$@""#, joinWords(bus) + ["--passcode", "-"])
        #expect(await right.ended() == 0, "\(right.errors)")
        host.send(SIGTERM)
        #expect(await host.ended() == 143)
        _ = await bus.stop()
    }

    @Test func aPasscodeThatIsMadeUpIsShownOnceAndNotInTheEvents() async throws {
        let bus = try await SimulatedBus()
        let host = try host(bus, "--payload", "a=1", "--passcode", "random", "-q")
        #expect(await host.prints("serving"), "\(host.errors)")
        let shown = host.errors.filter { $0.hasPrefix("Passcode: ") }
        #expect(shown.count == 1)
        let code = try #require(shown.first?.dropFirst(10))
        #expect(code.count == 8 && code.allSatisfy(\.isNumber))
        #expect(!host.output.contains { $0.contains(code) })
        let join = try RunningProgram(shell: #"echo \#(code) | "$0" "$@""#, joinWords(bus) + ["--passcode", "-"])
        #expect(await join.ended() == 0, "\(join.errors)")
        host.send(SIGTERM)
        #expect(await host.ended() == 143)
        _ = await bus.stop()
    }

    @Test(arguments: [("basic", "plaintext"), ("extended", "sealed"), ("auto", "sealed")])
    func theProfileIsTheOneThatWasAskedFor(profile: String, security: String) async throws {
        let bus = try await SimulatedBus()
        let host = try host(bus, "--payload", "a=1")
        #expect(await host.prints("serving"), "\(host.errors)")
        let join = try RunningProgram(joinWords(bus) + ["--profile", profile])
        #expect(await join.ended() == 0, "\(join.errors)")
        #expect(join.output.contains { $0.contains(#""security":"\#(security)""#) }, "\(join.output)")
        host.send(SIGTERM)
        #expect(await host.ended() == 143)
        _ = await bus.stop()
    }

    @Test func aPasscodeIsAskedForAtTheTerminalAndNotShown() async throws {
        let bus = try await SimulatedBus()
        let host = try host(bus, "--payload", "a=1", "--passcode", Self.passcode)
        #expect(await host.prints("serving"), "\(host.errors)")
        let tests = #filePath.split(separator: "/").dropLast(2).reduce("") { "\($0)/\($1)" }
        let join = try RunningProgram(
            shell: #"exec python3 "$1" 11111111,\#(Self.passcode) "$0" "${@:2}""#,
            [tests + "/Python/typed_passcode.py"] + joinWords(bus).filter { $0 != "--json" })
        #expect(await join.ended() == 0, "\(join.errors)")
        #expect(join.output == ["0"])
        host.send(SIGTERM)
        #expect(await host.ended() == 143)
        _ = await bus.stop()
    }
}
