// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit
import Testing

@testable import nearby

@Suite struct ReportTests {
    private static let peer = PeerIdentifier("/org/bluez/hci0/dev_00_1A_7D_DA_71_13")
    private static let configuration = NearbyHost.Configuration(
        appId: "com.example.chat",
        sessionId: "550e8400-e29b-41d4-a716-446655440000",
        payload: ["roomCode": "SWIFT42"]
    )

    private static let events: [NearbyDiscoveryKit.HostEvent] = [
        .serving(sessionId: "550e8400-e29b-41d4-a716-446655440000", degraded: nil),
        .joinRequested(JoinRequest(client: peer, payload: ["who": "\u{1B}[1mAnna"])),
        .handedOff(client: peer),
        .delivered(client: peer),
        .rejected(client: peer, reason: .appMismatch, message: "another app"),
        .failed(client: peer, NearbyError(.linkFailed, "the client left")),
    ]

    @Test func aHostPrintsAlignedLines() {
        let test = TestConsole()
        let report = HostReport(Self.configuration, test.console)
        for event in Self.events { report.show(event) }
        #expect(
            test.printed == """
                serving     com.example.chat  session 550e8400-e29b-41d4-a716-446655440000
                request     00:1A:7D:DA:71:13
                delivered   00:1A:7D:DA:71:13
                rejected    00:1A:7D:DA:71:13  app_mismatch: another app
                failed      00:1A:7D:DA:71:13  the client left

                """
        )
        #expect(test.told.isEmpty)
        #expect(report.deliveries == 1)
    }

    @Test(arguments: [127, 20, 1])
    func aReadingThatIsNoneIsNotPrinted(rssi: Int) {
        let test = TestConsole()
        let report = ScanReport(CommandContext(console: test.console, loop: CommandLoop()))
        report.show(
            .discovered(Discovery(peer: Self.peer, advertisement: Advertisement(), rssi: rssi, time: .now)))
        #expect(!test.printed.isEmpty)
        #expect(!test.printed.contains("dBm"))
    }

    /// Whoever fills a list first must not hide those who come later.
    @Test func aScanForgetsWhoHasBeenSilentLongest() {
        let test = TestConsole()
        let report = ScanReport(CommandContext(console: test.console, loop: CommandLoop()))
        func show(_ number: Int) {
            let peer = PeerIdentifier("/dev_\(number)")
            report.show(
                .discovered(
                    Discovery(
                        peer: peer, advertisement: Advertisement(localName: "name \(number)."), rssi: -50, time: .now))
            )
        }
        for number in 0...Limits.devices { show(number) }
        #expect(report.count == Limits.devices + 1)
        // The last is known, and is no news; the first is heard as if for the first time.
        for number in [Limits.devices, 0] { show(number) }
        #expect(test.printed.ranges(of: "name \(Limits.devices).").count == 1)
        #expect(test.printed.ranges(of: "name 0.").count == 2)
    }

    @Test func aHostPrintsOneObjectALine() {
        let test = TestConsole(OutputOptions(json: true))
        let report = HostReport(Self.configuration, test.console)
        for event in Self.events { report.show(event) }
        let client = #""client":"/org/bluez/hci0/dev_00_1A_7D_DA_71_13""#
        #expect(
            test.printed == """
                {"event":"serving","appId":"com.example.chat","sessionId":"550e8400-e29b-41d4-a716-446655440000","security":"open"}
                {"event":"joinRequested",\(client),"payload":{"who":"\\u001b[1mAnna"},"security":"plaintext"}
                {"event":"handedOff",\(client)}
                {"event":"delivered",\(client)}
                {"event":"rejected",\(client),"reason":"app_mismatch","message":"another app"}
                {"event":"failed",\(client),"code":"linkFailed","message":"the client left"}

                """
        )
    }

    @Test func aLongPayloadShowsWhatFitsWhichMTU() {
        #expect(HostReport.budget(Self.configuration).isEmpty)
        var long = Self.configuration
        long.payload["text"] = String(repeating: "x", count: 100)
        #expect(
            HostReport.budget(long) == [
                "  ATT MTU  payload bytes that fit  yours (132)",
                "  23       none                    does not fit",
                "  185      53                      does not fit",
                "  247      115                     does not fit",
                "  517      385                     fits",
            ]
        )
    }

    @Test func aClientPrintsThePayloadAligned() {
        let payload: NearbyPayload = ["room": "7", "roomCode": "SWIFT\u{1B}42", "seats": 4, "list": [true, nil]]
        #expect(
            JoinReport.lines(payload) == [
                "room      7", "roomCode  SWIFT\\u{1b}42", "seats     4", "list      [true,null]",
            ]
        )
    }

    @Test func aClientPrintsTheHandoffAsJSON() {
        var timing = HandoffTiming()
        timing.seen = .milliseconds(120)
        timing.answered = .microseconds(987_654)
        let message = NearbyMessage(appId: "a", sessionId: "s", payload: ["k": "v"])
        let handoff = Handoff(message: message, peer: PeerIdentifier("p"), timing: timing)
        let line = JSONLine.text(JoinReport.json(handoff))
        #expect(
            line == #"{"event":"handoff","appId":"a","sessionId":"s","payload":{"k":"v"},"host":"p","#
                + #""security":"plaintext","timing":"#
                + #"{"seen":120.0,"connected":0.0,"resolved":0.0,"subscribed":0.0,"written":0.0,"answered":987.7}}"#
        )
    }

    @Test func aManualChoiceKeepsItsNumbers() {
        let test = TestConsole(terminal: true)
        let configuration = NearbyClient.Configuration(appId: "a", selection: .manual)
        let report = JoinReport(configuration, test.console)
        func candidate(_ name: String, _ rssi: Int, near: Bool = true) -> NearbyCandidate {
            NearbyCandidate(peer: PeerIdentifier(name), name: name, address: nil, rssi: rssi, isNear: near)
        }
        #expect(report.chosen("1") == nil)
        report.show(.candidates([candidate("a", -50), candidate("far", -90, near: false)]))
        report.show(.candidates([candidate("b", -40), candidate("a", -50)]))
        #expect(report.chosen("0") == nil)
        #expect(report.chosen("3") == nil)
        #expect(report.chosen("\u{1B}[A") == nil)
        #expect(report.chosen("99999999999999999999") == nil)
        #expect(report.chosen(" 1 ") == PeerIdentifier("a"))
        #expect(report.chosen("2") == PeerIdentifier("b"))
        #expect(test.told.contains("2)  b (b)  -40 dBm\n"))
        #expect(!test.told.contains("far"))
    }

    @Test func aScanListsTheStrongestFirst() {
        let service = BluetoothUUID(NearbyService.service)
        func discovery(_ address: String, _ name: String?, _ rssi: Int?) -> Discovery {
            let advertisement = Advertisement(localName: name, serviceUUIDs: Set([service, 0x180A].compactMap { $0 }))
            return Discovery(
                peer: PeerIdentifier(address),
                address: BluetoothAddress(address),
                advertisement: advertisement,
                rssi: rssi,
                time: ContinuousClock.now
            )
        }
        let near = discovery("00:00:00:00:00:02", "台所\u{7}", -40)
        let table = ScanReport.table([discovery("00:00:00:00:00:01", nil, nil), near])
        #expect(
            table == [
                "ADDRESS            RSSI     NAME       SERVICES",
                "00:00:00:00:00:02  -40 dBm  台所\\u{7}  180A nearby",
                "00:00:00:00:00:01  -        -          180A nearby",
            ]
        )
        #expect(ScanReport.line(near) == "00:00:00:00:00:02  -40 dBm   台所\\u{7}                      180A nearby")
        #expect(
            JSONLine.text(ScanReport.json(near))
                == #"{"event":"discovered","device":"00:00:00:00:00:02","address":"00:00:00:00:00:02","#
                + #""name":"台所\u0007","rssi":-40,"services":["180A","A1B2C3D4-E5F6-7890-ABCD-EF1234567890"]}"#
        )
    }
}
