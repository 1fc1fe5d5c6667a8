// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct ProfileTests {
    @Test func `a passcode means extended only, and what contradicts that is an error`() throws {
        let passcode = try Passcode("1234")
        #expect(try !HostProfiles(passcode: passcode).servesBasic)
        #expect(try HostProfiles(passcode: passcode).helloFlags == [.passcodeNeeded, .basicRefused])
        #expect(try HostProfiles().servesBasic && HostProfiles().helloFlags.isEmpty)
        #expect(try HostProfiles(basic: .refused).helloFlags == .basicRefused)
        #expect(try HostProfiles(.extended).helloFlags == .basicRefused)
        #expect(try !HostProfiles(.basic).servesExtended)
        #expect(throws: ProfileError(code: .basicBesidePasscode)) {
            try HostProfiles(passcode: passcode, basic: .allowed)
        }
        #expect(throws: ProfileError(code: .passcodeWithoutExtended)) { try HostProfiles(.basic, passcode: passcode) }
        #expect(throws: ProfileError(code: .passcodeWithoutExtended)) { try ClientProfiles(.basic, passcode: passcode) }
        #expect(throws: ProfileError(code: .noProfile)) { try HostProfiles(.basic, basic: .refused) }
        #expect(throws: ProfileError(code: .basicBesideExtended)) { try HostProfiles(.extended, basic: .allowed) }
        #expect(try ClientProfiles(.auto, passcode: passcode).choice == .extended)
    }

    @Test(arguments: [
        ("", PasscodeError.Code.empty), ("123", .tooShort), (String(repeating: "1", count: 65), .tooLong),
        ("pässword", .unprintable), ("12\t4", .unprintable), ("1234\u{7F}", .unprintable), ("１２３４", .unprintable),
    ]) func `what is no passcode`(_ text: String, _ code: PasscodeError.Code) {
        do throws(PasscodeError) {
            _ = try Passcode(text)
            Issue.record("taken")
        } catch {
            #expect(error.code == code)
            #expect(text.isEmpty || !"\(error)".contains(text))
        }
    }

    @Test func `a passcode shows itself only when asked`() throws {
        for text in ["1234", "a b~", String(repeating: "x", count: 64)] {
            let passcode = try Passcode(text)
            #expect(passcode.reveal() == text)
            var dumped = ""
            dump(passcode, to: &dumped)
            let profiles = try HostProfiles(passcode: passcode)
            for shown in [
                "\(passcode)", String(reflecting: passcode), dumped, "\(profiles)", String(reflecting: profiles),
            ] {
                #expect(!shown.contains(text))
            }
        }
        let random = Passcode.random().reveal()
        #expect(random.utf8.count == 8 && random.allSatisfy(\.isNumber) && random != Passcode.random().reveal())
    }

    @Test func `a host that refuses the basic profile says so there`() throws {
        var host = try HostMachine(HostConfiguration(appId: "app", sessionId: "s", refusesBasic: true))
        let now = Instant.now
        _ = host.centralConnected("a", at: now)
        _ = host.subscribed("a", at: now)
        let actions = host.write(1, from: "a", Envelope.joinRequest(appId: "app").encoded(), mtu: 185, at: now)
        #expect(actions.first == .acknowledge(1))
        #expect(actions.compactMap(\.rejectReason) == [.securityRequired])
        #expect(!actions.contains { if case .decide = $0 { true } else { false } })
    }
}
