// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit
import Testing

@testable import nearby

/// The Python port of the extended client, written from the specification alone, against the built program: it shares
/// no code with ours, and reaches it through bleak and a simulated BlueZ.
@Suite(
    .timeLimit(.minutes(2)),
    .enabled(if: PythonPort.isAvailable, "no Python environment: run scripts/python-env.sh"))
struct PythonPortTests {
    private static let app = "com.example.port"
    private static let passcode = "48291357"

    @Test func everyVectorOfTheExtendedProfileHolds() async throws {
        let vectors = try PythonPort.run("extended_vectors.py")
        #expect(await vectors.ended() == 0, "\(vectors.errors)")
    }

    /// The largest is what 64 KiB leave beside the envelope's other keys.
    @Test(arguments: [nil, passcode], [100, 65_000])
    func itsHandoffIsTheHostsPayload(passcode: String?, size: Int) async throws {
        let bus = try await SimulatedBus()
        let note = String(repeating: "x", count: size)
        let host = try await host(bus, passcode: passcode, note: note)
        let join = try join(bus, passcode: passcode)
        try #require(await join.ended() == 0, "\(join.errors)")
        // Long lines are read in pieces.
        let answer = try JSONObject(parsing: [UInt8](join.output.joined().utf8))
        #expect(answer.string("type") == "handoff" && answer.string("appId") == Self.app)
        #expect(join.output.joined().contains(#""payload":{"note":"\#(note)"}"#))
        // The receipt has come: without it a handoff is not delivered.
        #expect(await host.prints("delivered"), "\(host.output)")
        let security = passcode == nil ? "sealed" : "authenticated"
        #expect(host.output.contains { $0.contains("joinRequested") && $0.contains(#""security":"\#(security)""#) })
        await stop(host, bus)
    }

    @Test func aRequestOfManyFramesReachesTheApp() async throws {
        let bus = try await SimulatedBus()
        let host = try await host(bus, passcode: Self.passcode)
        let note = String(repeating: "y", count: 30_000)
        let join = try join(bus, passcode: Self.passcode, "--payload", #"{"note":"\#(note)"}"#)
        try #require(await join.ended() == 0, "\(join.errors)")
        #expect(await host.prints("delivered"), "\(host.errors)")
        #expect(host.output.joined().contains(#""payload":{"note":"\#(note)"}"#))
        await stop(host, bus)
    }

    @Test func aWrongPasscodeIsARejectionOfItsOwnAndTheRightOneJoinsAfterIt() async throws {
        let bus = try await SimulatedBus()
        let host = try await host(bus, passcode: Self.passcode)
        let wrong = try join(bus, passcode: "11111111")
        #expect(await wrong.ended() == 6, "\(wrong.errors)")
        #expect(wrong.output.first?.hasPrefix("wrong_passcode: unauthorized") == true, "\(wrong.output)")
        #expect(!host.output.contains { $0.contains("joinRequested") })
        let right = try join(bus, passcode: Self.passcode)
        #expect(await right.ended() == 0, "\(right.errors)")
        await stop(host, bus)
    }

    @Test func nothingIsSentWhereOnlyOneSideHasAPasscode() async throws {
        let bus = try await SimulatedBus()
        let closed = try await host(bus, passcode: Self.passcode)
        let without = try join(bus, passcode: nil)
        #expect(await without.ended() == 7, "\(without.errors)")
        #expect(!closed.output.contains { $0.contains("rejected") })
        closed.send(SIGTERM)
        _ = await closed.ended()
        let open = try await host(bus, passcode: nil)
        let with = try join(bus, passcode: Self.passcode)
        #expect(await with.ended() == 7, "\(with.errors)")
        #expect(!open.output.contains { $0.contains("rejected") })
        await stop(open, bus)
    }

    @Test func aBasicClientIsRefusedByAHostWithAPasscode() async throws {
        let bus = try await SimulatedBus()
        let host = try await host(bus, passcode: Self.passcode)
        let basic = try PythonPort.run(
            "bleak_client.py", ["--adapter", "hci1", "--app-id", Self.app], bus: bus.address)
        #expect(await basic.ended() == 3, "\(basic.errors)")
        #expect(basic.output.first?.contains("security_required") == true, "\(basic.output)")
        await stop(host, bus)
    }

    @Test func aRejectionForAnotherAppComesSealed() async throws {
        let bus = try await SimulatedBus()
        let host = try await host(bus, passcode: nil)
        let join = try join(bus, passcode: nil, app: "com.example.other")
        #expect(await join.ended() == 3, "\(join.errors)")
        #expect(join.output.first?.hasPrefix("rejected: app_mismatch") == true, "\(join.output)")
        #expect(join.errors.contains { $0.contains("sealed=True") })
        await stop(host, bus)
    }

    /// BlueZ notifies every subscriber: each hears the other's frames, and opens its own.
    @Test func twoAtOnceEachGetTheirOwn() async throws {
        let bus = try await SimulatedBus(adapters: 3)
        let note = String(repeating: "z", count: 40_000)
        let host = try await host(bus, passcode: Self.passcode, note: note)
        let first = try join(bus, passcode: Self.passcode)
        let second = try join(bus, adapter: "hci2", passcode: Self.passcode)
        for join in [first, second] {
            #expect(await join.ended() == 0, "\(join.errors)")
            #expect(join.output.joined().contains(note))
        }
        await stop(host, bus)
    }

    private func host(_ bus: SimulatedBus, passcode: String?, note: String = "hello") async throws -> RunningProgram {
        let folder = try TemporaryFolder()
        let file = try folder.write("payload.json", [UInt8](#"{"note":"\#(note)"}"#.utf8))
        let script = passcode.map { #"NEARBY_PASSCODE=\#($0) exec "$0" "$@""# } ?? #"exec "$0" "$@""#
        let host = try RunningProgram(
            shell: script,
            [
                "host", "--json", "--bus", bus.address, "--adapter", "hci0", "--app-id", Self.app, "--payload-file",
                file,
            ])
        #expect(await host.prints("serving"), "\(host.errors)")
        withExtendedLifetime(folder) {}  // until the host has read it
        return host
    }

    private func join(
        _ bus: SimulatedBus, adapter: String = "hci1", passcode: String?, app: String = app, _ more: String...
    ) throws -> RunningProgram {
        let words = ["--adapter", adapter, "--app-id", app] + (passcode == nil ? [] : ["--passcode"]) + more
        return try PythonPort.run("extended_join.py", words, bus: bus.address, line: passcode ?? "")
    }

    private func stop(_ host: RunningProgram, _ bus: SimulatedBus) async {
        host.send(SIGTERM)
        _ = await host.ended()
        _ = await bus.stop()
    }
}

/// The programs in `Tests/Python`, in the environment that `scripts/python-env.sh` makes.
enum PythonPort {
    static let isAvailable = access(interpreter, X_OK) == 0

    private static let interpreter: String = {
        let variable = { (name: String) in getenv(name).map { String(cString: $0) } }
        return (variable("XDG_CACHE_HOME") ?? (variable("HOME") ?? "") + "/.cache")
            + "/nearbydiscoverykit/python/bin/python3"
    }()

    /// - Parameter line: What standard input has.
    static func run(
        _ name: String, _ arguments: [String] = [], bus: String = "", line: String = "", from file: String = #filePath
    ) throws -> RunningProgram {
        let folder = file.split(separator: "/").dropLast(2).reduce("") { "\($0)/\($1)" } + "/Python/"
        return try RunningProgram(
            shell: #"export DBUS_SYSTEM_BUS_ADDRESS="$1"; exec "${@:3}" <<<"$2""#,
            [bus, line, interpreter, folder + name] + arguments)
    }
}
