// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit
import Testing

@testable import nearby

@Suite struct QRCodeTests {
    @Test(arguments: ["", "a", "nearby:?app=app&passcode=12345678", "é\u{1F600}"])
    func aCodeIsReadAsWhatWasWritten(_ text: String) throws {
        // libqrencode makes no code of nothing.
        guard !text.isEmpty else { return #expect(QRCode(text) == nil) }
        let code = try #require(QRCode(text))
        #expect(try QRReader(code).text() == text)
    }

    @Test func theLinesShowTheModulesWithAQuietZone() throws {
        let code = try #require(QRCode("nearby:?app=app&passcode=12345678"))
        #expect(code.side == 29 && code.columns == 37)
        let zone = QRCode.quietZone
        for (number, line) in code.lines.enumerated() {
            let start = "\u{1B}[38;5;16;48;5;231m"
            #expect(line.hasPrefix(start) && line.hasSuffix("\u{1B}[0m"))
            let halves = Array(line.dropFirst(start.count).dropLast(4))
            #expect(halves.count == code.columns)
            for (column, half) in halves.enumerated() {
                let row = 2 * number - zone
                #expect("█▀".contains(half) == code.isDark(row: row, column: column - zone))
                #expect("█▄".contains(half) == code.isDark(row: row + 1, column: column - zone))
            }
        }
        #expect(code.lines.count == 19)
        #expect(!code.isDark(row: -1, column: 0) && !code.isDark(row: 0, column: 29))
    }

    @Test(arguments: [
        ("com.example.files", "48291357", "nearby:?app=com.example.files&passcode=48291357"),
        ("a b&c", "p&s #%~", "nearby:?app=a%20b%26c&passcode=p%26s%20%23%25~"),
        ("grüße", "1234", "nearby:?app=gr%C3%BC%C3%9Fe&passcode=1234"),
    ])
    func theLinkNamesAppAndPasscode(_ appId: String, _ passcode: String, _ link: String) throws {
        #expect(JoinLink.text(appId: appId, passcode: try Passcode(passcode)) == link)
    }

    @Test func theLongestLinkFits() throws {
        let app = String(repeating: "ß", count: Limits.appIdBytes / 2)
        let passcode = try Passcode(String(repeating: "%", count: ProtocolLimits.passcodeBytes.upperBound))
        let code = try #require(QRCode(JoinLink.text(appId: app, passcode: passcode)))
        #expect(code.side <= 177)
    }

    private func told(columns: Int, quiet: Bool = false) throws -> String {
        let configuration = NearbyHost.Configuration(appId: "app", payload: [:])
        let console = TestConsole(OutputOptions(quiet: quiet), terminal: true, columns: columns)
        HostReport(configuration, console.console).picture(try Passcode("12345678"))
        #expect(console.printed.isEmpty)
        return console.told
    }

    @Test(arguments: [false, true])
    func aHostShowsItOnStandardError(quiet: Bool) throws {
        let code = try #require(QRCode("nearby:?app=app&passcode=12345678"))
        #expect(try told(columns: 37, quiet: quiet) == code.lines.joined(separator: "\n") + "\n")
    }

    @Test func whereItDoesNotFitItSaysSo() throws {
        #expect(try told(columns: 36) == "The QR code needs 37 columns; this terminal is narrower.\n")
    }

    @Test(arguments: [
        (["--qr"], "--qr: there is no passcode to show"),
        (["--qr", "--json", "--passcode", "1234"], "--qr and --json exclude each other"),
    ])
    func whatMakesNoSenseIsRefused(_ words: [String], _ message: String) {
        #expect {
            try Invocation(["host", "--app-id", "a", "--payload", "a=1"] + words)
        } throws: {
            ($0 as? Failure)?.message.hasPrefix(message) == true
        }
    }

    @Test func withoutATerminalTheHostDoesNotStart() async throws {
        let host = try RunningProgram(
            ["host", "--app-id", "a", "--payload", "a=1", "--passcode", "48291357", "--qr", "--bus", "unix:path=/none"])
        #expect(await host.ended() == ExitCode.usage.rawValue)
        #expect(host.errors.contains { $0.contains("standard error is none") })
        #expect(!host.errors.contains { $0.contains("48291357") })
    }
}
