// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit
import Testing

@testable import nearby

@Suite struct InvocationTests {
    private func command<C>(_ words: String, as type: C.Type = C.self) throws -> C? {
        guard case .run(let command) = try Invocation(words.split(separator: " ").map(String.init)) else { return nil }
        return command as? C
    }

    private func text(_ words: [String]) throws -> String? {
        if case .print(let text) = try Invocation(words) { text } else { nil }
    }

    @Test func readsAHost() throws {
        let command: HostCommand? = try command(
            "host --app-id com.example.chat -p a=1 b:=2 --once --name Pi --timeout 2m --adapter hci1 --wait --json -q"
        )
        let configuration = try #require(command?.configuration)
        #expect(configuration.appId == "com.example.chat")
        #expect(configuration.payload == ["a": "1", "b": 2])
        #expect(configuration.maximumHandoffs == 1)
        #expect(configuration.name == "Pi")
        #expect(configuration.whenUnavailable == .wait)
        #expect(command?.timeout == .seconds(120))
        #expect(command?.output == OutputOptions(json: true, quiet: true))
    }

    @Test func readsAJoin() throws {
        let command: JoinCommand? = try command(
            "join --app-id a --min-rssi -60 --select strongest --timeout 500ms --session-id "
                + "550E8400-e29b-41d4-a716-446655440000"
        )
        let configuration = try #require(command?.configuration)
        #expect(configuration.minimumRSSI == -60)
        #expect(configuration.selection == .strongest(within: .seconds(2)))
        #expect(configuration.timeout == .milliseconds(500))
        #expect(configuration.sessionId == "550E8400-e29b-41d4-a716-446655440000")
        #expect(configuration.whenUnavailable == .fail(after: .seconds(3)))
        #expect(configuration.payload == nil)
    }

    @Test func readsAScan() throws {
        let hosts: ScanCommand? = try command("scan")
        #expect(hosts?.filter.services.count == 1)
        let all: ScanCommand? = try command("scan --all --min-rssi -70")
        #expect(all?.filter == ScanFilter(services: [], minimumRSSI: -70))
    }

    @Test(arguments: [
        ("host -a a", "a payload is missing"), ("host -p k=v", "--app-id is missing"),
        ("host -a a -p k=v --payload-file x", "--payload and --payload-file exclude each other"),
        ("host -a a -p k=v --once --max-joins 2", "--once and --max-joins exclude each other"),
        ("host -a a -p k=v --max-joins 0", "--max-joins: “0” is not accepted; expected a whole number from 1 to"),
        ("host -a a -p k=v -q -v", "--quiet and --verbose exclude each other"),
        ("host -a a -p k=v --session-id 1", "--session-id: “1” is not accepted; expected a UUID"),
        ("join -a a --select best", "--select: “best” is not accepted; expected first, strongest or manual"),
        ("simulate --adapters 9", "--adapters: “9” is not accepted; expected a whole number from 1 to 8"),
        ("scan --adapter wlan0", "--adapter: “wlan0” is not accepted; expected an adapter's name or address"),
        ("scan --bus here", "--bus: “here” is not accepted; expected system, session, or a D-Bus address"),
    ])
    func refusesWithTheOptionsName(words: String, message: String) {
        let failure = #expect(throws: Failure.self) { try Invocation(words.split(separator: " ").map(String.init)) }
        #expect(failure?.message.hasPrefix(message) == true, "\(failure?.message ?? "")")
        #expect(failure?.exitCode == .usage)
        #expect(failure?.command == words.split(separator: " ").first.map(String.init))
    }

    @Test(
        arguments: [
            ([], "a command is missing: host, join, scan, simulate, demo, bridge, device", nil),
            (["hots"], "unknown command “hots”", "Did you mean host?"),
            (["--json"], "unknown option “--json”", "The command comes first."),
            (["--version", "x"], "unexpected argument “x”", nil),
            (["help", "hots"], "unknown command “hots”", "Did you mean host?"),
            (["device"], "device what? device scan, device info, device services, device console", nil),
            (["device", "scam"], "unknown command “device scam”", "Did you mean device scan?"),
            (["\u{1B}c"], "unknown command “\\u{1b}c”", nil),
        ] as [([String], String, String?)])
    func refusesWhatIsNoCommand(words: [String], message: String, advice: String?) {
        let failure = #expect(throws: Failure.self) { try Invocation(words) }
        #expect(failure?.message == message)
        #expect(failure?.advice == advice)
    }

    @Test(arguments: ["--version", "-V", "version"])
    func tellsItsVersion(word: String) throws {
        #expect(try text([word]) == "nearby \(Program.version)\n")
    }

    @Test(arguments: Program.commands.map { $0.spec.name })
    func everyCommandHasHelpWithItsOptions(name: String) throws {
        let words = name.split(separator: " ").map(String.init)
        let help = try #require(try text(words + ["--help"]))
        #expect(try text(["help"] + words) == help)
        let spec = try #require(Program.commands.first { $0.spec.name == name }?.spec)
        for option in spec.allOptions { #expect(help.contains("--\(option.name)")) }
        #expect(help.contains("`nearby --help` lists the exit codes."))
        #expect(try text(["--help"])?.contains("79   the host said no") == true)
        #expect(help.split(separator: "\n").allSatisfy { $0.count <= 100 })
        #expect(try text(["--help"])?.contains("  \(name)") == true)
        #expect(Set(spec.allOptions.map(\.name)).count == spec.allOptions.count)
        let shorts = spec.allOptions.compactMap(\.short)
        #expect(Set(shorts).count == shorts.count)
    }

    /// The examples of the help are command lines, too.
    @Test(arguments: Program.commands.flatMap { $0.spec.examples })
    func theExamplesAreAccepted(example: String) throws {
        guard example.hasPrefix("nearby "), !example.contains("|") else { return }
        let words = example.split(separator: " ").dropFirst().map { $0 == "ADDRESS" ? "unix:path=/x" : String($0) }
        guard case .run = try Invocation(words) else {
            Issue.record("not a command line: \(example)")
            return
        }
    }
}
