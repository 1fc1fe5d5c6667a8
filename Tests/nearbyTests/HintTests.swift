// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit
import Testing

@testable import nearby

/// What a newcomer is told to do next.
@Suite struct HintTests {
    private static let configuration = NearbyHost.Configuration(appId: "com.example.chat", payload: ["k": "v"])

    @Test func aSimulationSaysWhatToTypeNext() throws {
        let bus = "unix:path=/tmp/bus,guid=1;tcp:host=x"
        let lines = SimulateCommand.next(bus: bus, adapters: ["hci0", "hci1", "hci2"])
        #expect(lines.count == 3)
        #expect(lines[1].hasPrefix("  nearby host ") && lines[1].hasSuffix("--bus '\(bus)' --adapter hci0"))
        #expect(lines[2].hasPrefix("  nearby join ") && lines[2].hasSuffix("--bus '\(bus)' --adapter hci1"))
        for line in lines.dropFirst() {
            let words = line.split(separator: " ").dropFirst().map { $0.filter { $0 != "'" } }
            guard case .run = try Invocation(words) else {
                Issue.record("not a command line: \(line)")
                continue
            }
        }
        #expect(SimulateCommand.next(bus: bus, adapters: ["hci0"]).isEmpty)
    }

    @Test(arguments: [
        (RadioOptions(), "On the other device:  nearby join --app-id com.example.chat"),
        (RadioOptions(bus: "system", adapter: "hci1"), "On the other device:  nearby join --app-id com.example.chat"),
        (
            RadioOptions(bus: "unix:path=/x", adapter: "hci0"),
            "In another terminal:  nearby join --app-id com.example.chat --bus 'unix:path=/x' --adapter hci1"
        ),
        (
            RadioOptions(bus: "unix:path=/x", adapter: "hci1"),
            "In another terminal:  nearby join --app-id com.example.chat --bus 'unix:path=/x' --adapter hci0"
        ),
    ])
    func aHostSaysWhatTheOtherSideTypes(radio: RadioOptions, hint: String) {
        #expect(HostReport.hint(Self.configuration, on: radio, systemBus: nil) == hint)
    }

    @Test func aHostOnAnotherSystemBusSaysNothing() {
        #expect(HostReport.hint(Self.configuration, on: RadioOptions(), systemBus: "unix:path=/x") == nil)
    }

    @Test func noHintStandsBetweenObjects() {
        let test = TestConsole(OutputOptions(json: true), terminal: true)
        HostReport(Self.configuration, test.console).show(.serving(sessionId: "s", degraded: nil))
        #expect(!test.told.contains("On the other device"))
    }

    @Test(arguments: [
        (0, "no host was heard"), (1, "one host was heard, none near enough"),
        (2, "2 hosts were heard, none near enough"),
    ])
    func aScanTellsOfHostsThatAreTooFar(far: Int, message: String) throws {
        let service = try #require(BluetoothUUID(NearbyService.service))
        let failure = ScanCommand.nothing(far: far, of: ScanFilter(services: [service]))
        #expect(failure.message == message)
        #expect(failure.exitCode == .nothingFound)
    }

    @Test func aScanCountsWhatIsTooFarAndShowsItNot() {
        let test = TestConsole()
        let report = ScanReport(CommandContext(console: test.console, loop: CommandLoop()), minimumRSSI: -60)
        func hear(_ name: String, _ rssi: Int?) {
            report.show(
                .discovered(
                    Discovery(
                        peer: PeerIdentifier(name), advertisement: Advertisement(localName: name), rssi: rssi,
                        time: .now)))
        }
        hear("far", -61)
        hear("unknown", nil)
        hear("near", -60)
        #expect(report.farCount == 1)
        #expect(report.count == 1)
        #expect(test.printed.contains("near") && !test.printed.contains("far") && !test.printed.contains("unknown"))
        hear("far", -59)
        #expect(report.farCount == 0)
        #expect(report.count == 2)
    }

    @Test func theLiveLineTellsOfHostsOfOtherApps() {
        let test = TestConsole(terminal: true)
        let report = JoinReport(NearbyClient.Configuration(appId: "a"), test.console)
        report.show(.passedOver(PeerIdentifier("p"), reason: "it serves another app"))
        report.show(.passedOver(PeerIdentifier("p"), reason: "it serves another app"))
        #expect(test.told.hasSuffix("Looking on… (one host nearby serves another app)"))
    }

    /// The bus's own words are for a bug report.
    @Test(arguments: [false, true])
    func bluetoothThatIsAwayIsToldInPlainWords(verbose: Bool) {
        let cause = "org.freedesktop.DBus.Error.ServiceUnknown: " + String(repeating: "x", count: 300)
        let error = BluetoothError(
            .serviceUnavailable, "the Bluetooth service does not run", advice: "Start it.", cause: cause)
        let test = TestConsole(OutputOptions(verbose: verbose))
        test.console.waiting(for: error)
        let words = "waiting for Bluetooth: the Bluetooth service does not run. Start it.\n"
        #expect(test.told == words + (verbose ? "detail: \(cause)\n" : ""))
    }

    @Test func adviceNamesTheOptions() {
        func advice(_ text: String) -> String? { Failure(NearbyError(.nothingFound, "x", advice: text)).advice }
        #expect(advice("Do both use the same appId, byte for byte?") == "Do both use the same --app-id, byte for byte?")
        #expect(advice("See D-Bus, or name another bus.")?.contains("--bus ADDRESS") == true)
        #expect(advice("See D-Bus, or name another bus.")?.contains("`nearby demo`") == true)
    }

    private static let noAdapter = Failure(
        .noAdapter, code: "adapterNotFound", "there is no Bluetooth adapter", advice: "Plug one in.")

    /// As the facade does, in a command line's words.
    @Test(arguments: [
        noAdapter, Failure(.serviceUnavailable, code: "serviceUnavailable", "the Bluetooth service is not running"),
    ])
    func whereBluetoothIsMissingTheAdviceNamesTheBridge(failure: Failure) throws {
        let advice = try #require(RadioOptions().namingBridges(failure, { _ in nil }).advice)
        #expect(advice.contains("--radio bridge:HOST:PORT") && advice.contains("NEARBY_BRIDGE"))
        if let first = failure.advice { #expect(advice.hasPrefix(first)) }
        #expect(RadioOptions(bus: "session", name: .bluez).namingBridges(failure, { _ in nil }).advice == advice)
    }

    @Test(arguments: [
        (RadioOptions(name: .bridge("h:1")), noAdapter, nil), (RadioOptions(adapter: "hci7"), noAdapter, nil),
        (RadioOptions(), noAdapter, "127.0.0.1:7877"),
        (RadioOptions(), Failure(.poweredOff, code: "poweredOff", "the Bluetooth adapter is off"), nil),
    ])
    func whoHasABridgeOrAnAdapterIsNotSentToOne(options: RadioOptions, failure: Failure, bridge: String?) {
        #expect(options.namingBridges(failure, { _ in bridge }) == failure)
    }

    @Test(arguments: [
        "host -a a -p k=v", "join -a a", "scan", "device scan", "device info -d a", "device services -d a",
        "device console -d a",
    ])
    func eachCommandNamesTheBridge(words: String) async throws {
        let script = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent exec env -u NEARBY_BRIDGE \"$0\" \"$@\""
        let program = try RunningProgram(shell: script, words.split(separator: " ").map(String.init))
        #expect(await program.ended() == ExitCode.serviceUnavailable.rawValue)
        #expect(program.errors.last?.contains("--radio bridge:HOST:PORT") == true, "\(program.errors)")
    }
}
