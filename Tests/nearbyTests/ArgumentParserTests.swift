// SPDX-License-Identifier: MIT

import Testing

@testable import nearby

@Suite struct ArgumentParserTests {
    private static let spec = CommandSpec(
        name: "test",
        summary: "",
        synopsis: "",
        options: [
            .value("app-id", "a", "ID", ""),
            .value("payload", "p", "KEY=VALUE", repeatable: true, ""),
            .value("min-rssi", nil, "DBM", ""),
            .flag("json", nil, ""),
            .flag("quiet", "q", ""),
            .flag("verbose", "v", ""),
        ],
        operandsOption: "payload"
    )

    private func parse(_ words: [String]) throws -> [String: [String]] {
        try ArgumentParser(spec: Self.spec).parse(words).values
    }

    private func failure(_ words: [String]) -> Failure? {
        do throws(Failure) {
            _ = try ArgumentParser(spec: Self.spec).parse(words)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        arguments: [
            ([], [:]),
            (["--app-id", "x"], ["app-id": ["x"]]),
            (["--app-id=x"], ["app-id": ["x"]]),
            (["--app-id="], ["app-id": [""]]),
            (["--app-id=a=b"], ["app-id": ["a=b"]]),
            (["-a", "x"], ["app-id": ["x"]]),
            (["-ax"], ["app-id": ["x"]]),
            (["-qva", "x"], ["quiet": [""], "verbose": [""], "app-id": ["x"]]),
            (["-qvax"], ["quiet": [""], "verbose": [""], "app-id": ["x"]]),
            (["--min-rssi", "-60"], ["min-rssi": ["-60"]]),
            (["--app-id", "-"], ["app-id": ["-"]]),
            (["--app-id=--json"], ["app-id": ["--json"]]),
            (["--json", "--json"], ["json": [""]]),
            (["-p", "a=1", "--payload", "b=2"], ["payload": ["a=1", "b=2"]]),
            (["--payload", "a=1", "b=2", "--json", "c=3"], ["payload": ["a=1", "b=2", "c=3"], "json": [""]]),
            (["--", "--a=1"], ["payload": ["--a=1"]]),
            (["--"], [:]),
            (["--help"], ["help": [""]]),
            (["-h"], ["help": [""]]),
        ] as [([String], [String: [String]])])
    func sortsWordsIntoOptions(words: [String], expected: [String: [String]]) throws {
        #expect(try parse(words) == expected)
    }

    @Test(arguments: [
        (["--app-idd", "x"], "unknown option “--app-idd”"),
        (["-x"], "unknown option “-x”"),
        (["-qx"], "unknown option “-x”"),
        (["---"], "unknown option “---”"),
        (["--="], "unknown option “--”"),
        (["--json=1"], "--json: takes no value"),
        (["--app-id"], "--app-id: needs a value: ID"),
        (["-a"], "--app-id: needs a value: ID"),
        (["--app-id", "--json"], "--app-id: needs a value: ID"),
        (["--app-id", "--json=1"], "--app-id: needs a value: ID"),
        (["--app-id", "--"], "--app-id: needs a value: ID"),
        (["--app-id", "x", "--app-id", "y"], "--app-id: given twice"),
        (["word"], "unexpected argument “word”"),
        (["--", "--json"], "unexpected argument “--json”"),
        (["-"], "unexpected argument “-”"),
        ([""], "unexpected argument “”"),
        (["\u{1B}[2J"], "unexpected argument “\\u{1b}[2J”"),
        (["--\u{1B}]0;x\u{7}"], "unknown option “--\\u{1b}]0;x\\u{7}”"),
    ])
    func refusesWithTheOptionsName(words: [String], message: String) {
        #expect(failure(words)?.message == message)
        #expect(failure(words)?.exitCode == .usage)
    }

    @Test func suggestsWhatAMisspeltOptionMayHaveMeant() {
        #expect(failure(["--ap-id"])?.advice == "Did you mean --app-id?")
        #expect(failure(["--vebrose"])?.advice == "Did you mean --verbose?")
        #expect(failure(["--elephant"])?.advice == nil)
    }

    @Test func survivesHostileWords() {
        let long = String(repeating: "x", count: 60_000)
        let combining = "e" + String(repeating: "\u{301}", count: 5_000)
        for word in ["--" + long, "-" + long, long, "--" + combining, "-" + combining, "\u{202E}--json", "--\u{0}"] {
            let message = failure([word])?.message ?? ""
            #expect(message.unicodeScalars.count < 200, "\(message)")
        }
        #expect(failure(Array(repeating: "--", count: 900))?.message == "unexpected argument “--”")
    }

    @Test(arguments: [("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("kitten", "sitting", 3), ("ab", "", 2)])
    func measuresHowFarWordsAreApart(left: String, right: String, distance: Int) {
        #expect(Suggestion.distance(Array(left), Array(right)) == distance)
    }
}
