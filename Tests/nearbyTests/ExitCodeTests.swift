// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit
import Testing

@testable import nearby

@Suite struct ExitCodeTests {
    @Test(arguments: [
        (NearbyError.Code.invalidConfiguration, Int32(64)), (.payloadTooLarge, 65), (.serviceUnavailable, 69),
        (.internalFailure, 70), (.advertisingFailed, 71), (.adapterNotFound, 72), (.poweredOff, 73),
        (.nothingFound, 75), (.linkFailed, 76), (.unauthorized, 77), (.rejected, 79), (.cancelled, 130),
    ])
    func everyCauseHasItsExitCode(code: NearbyError.Code, expected: Int32) {
        #expect(ExitCode(code).rawValue == expected)
        #expect(Failure(NearbyError(code, "x")).exitCode.rawValue == expected)
    }

    @Test(arguments: [
        (BluetoothError.Code.adapterNotFound, Int32(72)), (.poweredOff, 73), (.unauthorized, 77),
        (.serviceUnavailable, 69), (.resetting, 69), (.limitExceeded, 69), (.advertisingFailed, 71),
        (.connectionFailed, 76),
        (.cancelled, 130),
    ])
    func everyRadioErrorHasItsExitCode(code: BluetoothError.Code, expected: Int32) {
        #expect(ExitCode(code).rawValue == expected)
    }

    @Test(arguments: [(Int32(2), Int32(130)), (15, 143), (1, 129)])
    func signalsAreThoseOfAShell(signal: Int32, expected: Int32) {
        #expect(ExitCode(signal: signal).rawValue == expected)
    }

    @Test(arguments: ExitCode.allCases)
    func theDocumentationListsThem(code: ExitCode) throws {
        let root = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }
        let file = try #require(fopen(root + "/docs/cli.md", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = fread(&bytes, 1, bytes.count, file)
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        #expect(text.contains("\n| \(code.rawValue) | \(code.meaning) |\n"))
    }

    @Test func meaningsAreDistinct() {
        #expect(Set(ExitCode.allCases.map(\.meaning)).count == ExitCode.allCases.count)
    }

    @Test func aRejectionTellsItsReason() {
        let error = NearbyError(
            .rejected,
            "the host said no: denied",
            rejection: NearbyError.Rejection(reason: .denied, message: "Not now\u{1B}", attError: 0x80),
            encounters: Encounters(seen: 2, tooFar: 1)
        )
        let line = JSONLine.text(Failure(error).json)
        #expect(
            line == #"{"event":"error","code":"rejected","message":"the host said no: denied","exitCode":79,"#
                + #""reason":"denied","hostMessage":"Not now\u001b","attError":128,"security":"plaintext","#
                + #""seen":2,"tooFar":1,"otherApp":0,"failed":0}"#
        )
    }
}
