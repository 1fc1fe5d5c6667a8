// SPDX-License-Identifier: MIT

import Testing

@testable import nearby

@Suite struct ValueTypeTests {
    @Test(arguments: [
        ("500ms", Duration.milliseconds(500)), ("30s", .seconds(30)), ("2m", .seconds(120)), ("1.5s", .seconds(1.5)),
        ("0.5m", .seconds(30)), ("1ms", .milliseconds(1)), ("0.001s", .milliseconds(1)), ("1440m", .seconds(86_400)),
        ("007s", .seconds(7)),
    ])
    func readsTimes(text: String, expected: Duration) {
        #expect(TimeText.duration(text) == expected)
    }

    @Test(arguments: [
        "", "s", "ms", "30", "30 s", " 30s", "-1s", "+1s", "0s", "0.0s", "1e3s", "1h", "30S", "1.s", ".5s", "1.2.3s",
        "1.2345s", "0.0001s", "0.5ms", "1441m", "86401s", "99999999999999999999s", "9223372036854775807m",
        "٣s", "3\u{0}s", "NaNs", "infs", "1_000s",
    ])
    func refusesWhatIsNoTime(text: String) {
        #expect(TimeText.duration(text) == nil)
    }

    @Test(arguments: [
        (Duration.milliseconds(40), "0.0 s"), (.milliseconds(849), "0.8 s"), (.seconds(9.94), "9.9 s"),
        (.seconds(9.96), "10 s"), (.seconds(119), "119 s"), (.seconds(180), "3 min"),
    ])
    func printsTimes(duration: Duration, expected: String) {
        #expect(TimeText.print(duration) == expected)
    }

    @Test(
        arguments: [
            ("0", 0), ("-60", -60), ("-127", -127), ("-128", nil), ("1", nil), ("127", nil), ("+0", nil), ("-6O", nil),
            ("", nil), ("-0000000000060", nil), ("−60", nil), ("-60dBm", nil),
        ] as [(String, Int?)])
    func readsSignalStrengths(text: String, expected: Int?) {
        #expect(ValueType<Int>.rssi.read(text) == expected)
    }

    @Test(arguments: ["hci0", "hci12", "00:1A:7D:DA:71:13", "aa:bb:cc:dd:ee:ff"])
    func takesAdapters(text: String) {
        #expect(ValueType<String>.adapter.read(text) == text)
    }

    @Test(arguments: ["", "hci", "hciX", "hci99999", "HCI0", "eth0", "hci0/..", "00:1A:7D:DA:71", "hci٠"])
    func refusesWhatIsNoAdapter(text: String) {
        #expect(ValueType<String>.adapter.read(text) == nil)
    }

    @Test(arguments: [
        "system", "session", "unix:path=/run/dbus/system_bus_socket", "tcp:host=localhost,port=1;unix:path=/x",
    ])
    func takesBusAddresses(text: String) {
        #expect(ValueType<String>.busAddress.read(text) == text)
    }

    @Test(arguments: ["", ":", "unix", "unix:", "/run/dbus", "unix:path", "Unix:path=/x", "unix:path=/\n"])
    func refusesWhatIsNoBusAddress(text: String) {
        #expect(ValueType<String>.busAddress.read(text) == nil)
        #expect(ValueType<String>.busAddress.read("unix:path=/" + String(repeating: "x", count: 1_024)) == nil)
    }

    @Test(arguments: ["550e8400-e29b-41d4-a716-446655440000", "A1B2C3D4-E5F6-7890-ABCD-EF1234567890"])
    func takesUUIDsAsTheyAreWritten(text: String) {
        #expect(ValueType<String>.uuid.read(text) == text)
    }

    @Test(arguments: ["", "180A", "550e8400e29b41d4a716446655440000", "550e8400-e29b-41d4-a716-44665544000g"])
    func refusesWhatIsNoUUID(text: String) {
        #expect(ValueType<String>.uuid.read(text) == nil)
    }

    @Test func boundsNames() {
        let appId = ValueType<String>.appId
        #expect(appId.read("com.example.chat") != nil)
        #expect(appId.read("") == nil)
        #expect(appId.read(String(repeating: "x", count: 255)) != nil)
        #expect(appId.read(String(repeating: "é", count: 128)) == nil)
        #expect(appId.read("a\u{1B}") == nil)
        let name = ValueType<String>.advertisedName
        #expect(name.read(String(repeating: "x", count: 29)) != nil)
        #expect(name.read(String(repeating: "x", count: 30)) == nil)
    }

    @Test func namesTheOptionAndWhatWasExpected() {
        let values = OptionValues(spec: JoinCommand.spec, parsed: ParsedArguments(values: ["timeout": ["soon"]]))
        #expect(
            throws: Failure.usage(
                "--timeout: “soon” is not accepted; expected a time such as 500ms, 30s or 2m, at most 24 hours"
            )
        ) {
            try values.value("timeout", as: .time)
        }
        #expect(
            throws: Failure.usage(
                "--app-id is missing; expected a name of 1 to 255 bytes, such as com.example.chat"
            )
        ) {
            try values.required("app-id", as: .appId)
        }
    }
}
