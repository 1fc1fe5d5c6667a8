// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit
import Testing

@testable import nearby

@Suite struct PasscodeArgumentsTests {
    private static func values(_ words: String...) throws -> OptionValues {
        OptionValues(spec: HostCommand.spec, parsed: try ArgumentParser(spec: HostCommand.spec).parse(words))
    }

    @Test func theOptionGivesIt() throws {
        let source = try PasscodeArguments.source(try Self.values("--passcode", "482913"), allowsRandom: true)
        #expect(source == .given(try Passcode("482913")))
    }

    @Test func aHostMayHaveOneMadeUp() throws {
        #expect(try PasscodeArguments.source(try Self.values("--passcode=random"), allowsRandom: true) == .random)
        let word = try PasscodeArguments.source(try Self.values("--passcode=random"), allowsRandom: false)
        #expect(word == .given(try Passcode("random")))
    }

    @Test(arguments: ["4829é13", "123", String(repeating: "7", count: 65)])
    func whatIsNoneIsRefusedWithoutBeingRepeated(text: String) throws {
        let values = try Self.values("--passcode=\(text)")
        let failure = #expect(throws: Failure.self) { try PasscodeArguments.source(values, allowsRandom: true) }
        #expect(failure?.exitCode == .usage)
        #expect(failure?.message.contains("--passcode") == true)
        #expect(failure?.message.contains(text) == false)
    }

    @Test func anEmptyOneIsAnErrorAndNotNone() throws {
        let values = try Self.values("--passcode=")
        let failure = #expect(throws: Failure.self) { try PasscodeArguments.source(values, allowsRandom: true) }
        #expect(failure?.message.contains("empty") == true)
    }

    @Test func aForgottenValueIsNotRepeated() {
        let failure = #expect(throws: Failure.self) { try Self.values("--passcode", "--app-id=482913") }
        #expect(failure?.message == "--passcode: needs a value: CODE")
        #expect(failure?.advice == nil)
    }

    @Test func twoWaysAtOnceExcludeEachOther() throws {
        let values = try Self.values("--passcode", "482913", "--passcode-file", "x")
        #expect(throws: Failure.self) { try PasscodeArguments.source(values, allowsRandom: true) }
        let stdin = try Self.values("--passcode", "-", "--payload-file", "-")
        #expect(throws: Failure.self) { try PasscodeArguments.source(stdin, allowsRandom: true) }
    }

    @Test func aFileGivesItsFirstLine() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("code", [UInt8]("482913\r\nmore\n".utf8))
        let source = try PasscodeArguments.source(try Self.values("--passcode-file", path), allowsRandom: true)
        #expect(source == .given(try Passcode("482913")))
        let missing = try Self.values("--passcode-file", path + "x")
        let failure = #expect(throws: Failure.self) { try PasscodeArguments.source(missing, allowsRandom: true) }
        #expect(failure?.exitCode == .unreadableFile)
    }

    @Test(arguments: [
        ["--profile", "basic", "--passcode", "482913"], ["--profile", "secret"], ["--passcode", "123"],
    ])
    func aHostRefusesWhatContradicts(words: [String]) {
        let words = ["host", "--app-id", "a", "--payload", "a=1"] + words
        let failure = #expect(throws: Failure.self) {
            if case .run(let command) = try Invocation(words), let host = command as? HostCommand {
                _ = try host.configuration.check()
            }
        }
        #expect(failure == nil || failure?.exitCode == .usage)
    }
}

extension NearbyHost.Configuration {
    /// What a host made of it would say.
    fileprivate func check() throws(Failure) -> [String] {
        do throws(NearbyError) {
            return try NearbyHost(self, radio: try DefaultRadio.make(bus: "unix:path=/nowhere")).notices
        } catch {
            throw Failure(error)
        }
    }
}
