// SPDX-License-Identifier: MIT

/// The words of a command line, sorted into options.
struct ParsedArguments: Sendable, Equatable {
    /// By option name; a flag that was given has an empty text.
    var values: [String: [String]] = [:]
}

/// Sorts the words behind a command's name into its options.
///
/// `--name value`, `--name=value`, `-n value`, `-nvalue`, `-qv` and `--`, as getopt_long has them; no abbreviations. The
/// value of an option may begin with a dash (`--min-rssi -60`) unless it is the name of another option, which is more
/// likely a forgotten value; `--name=--json` passes it all the same.
struct ArgumentParser {
    let spec: CommandSpec

    func parse(_ words: some Sequence<String>) throws(Failure) -> ParsedArguments {
        var result = ParsedArguments()
        var iterator = Array(words).makeIterator()
        var onlyOperands = false
        while let word = iterator.next() {
            if onlyOperands || word == "-" || !word.hasPrefix("-") {
                try takeOperand(word, into: &result)
            } else if word == "--" {
                onlyOperands = true
            } else if word.hasPrefix("--") {
                try takeLong(word.dropFirst(2), &iterator, into: &result)
            } else {
                try takeShort(word.dropFirst(), &iterator, into: &result)
            }
        }
        return result
    }

    private func takeLong(
        _ word: Substring,
        _ rest: inout IndexingIterator<[String]>,
        into result: inout ParsedArguments
    ) throws(Failure) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts.first ?? "")
        guard let option = spec.allOptions.first(where: { $0.name == name }) else {
            throw unknown("--\(name)", among: spec.allOptions.map { "--\($0.name)" })
        }
        if option.placeholder == nil {
            guard parts.count == 1 else { throw .usage(option: name, "takes no value") }
            try add("", to: option, &result)
        } else if parts.count == 2 {
            try add(String(parts[1]), to: option, &result)
        } else {
            try add(try next(for: option, &rest), to: option, &result)
        }
    }

    private func takeShort(
        _ word: Substring,
        _ rest: inout IndexingIterator<[String]>,
        into result: inout ParsedArguments
    ) throws(Failure) {
        var letters = word
        while let letter = letters.popFirst() {
            guard let option = spec.allOptions.first(where: { $0.short == letter }) else {
                throw unknown("-\(letter)", among: [])
            }
            if option.placeholder == nil {
                try add("", to: option, &result)
            } else {
                let value = letters.isEmpty ? try next(for: option, &rest) : String(letters)
                return try add(value, to: option, &result)
            }
        }
    }

    private func next(
        for option: OptionSpec,
        _ rest: inout IndexingIterator<[String]>
    ) throws(Failure) -> String {
        let expected = option.placeholder ?? ""
        guard let value = rest.next() else {
            throw .usage(option: option.name, "needs a value: \(expected)")
        }
        let name = value.split(separator: "=", maxSplits: 1).first.map(String.init) ?? ""
        if value == "--" || spec.allOptions.contains(where: { "--\($0.name)" == name }) {
            throw .usage(
                "--\(option.name): needs a value: \(expected)",
                // A secret is not repeated, whatever it looks like.
                advice: option.isSecret
                    ? nil : "If \(quoted(value)) is meant as the value, write --\(option.name)=\(printable(value))."
            )
        }
        return value
    }

    private func takeOperand(_ word: String, into result: inout ParsedArguments) throws(Failure) {
        if let name = spec.operandsOption, word.contains("="),
            let option = spec.allOptions.first(where: { $0.name == name })
        {
            return try add(word, to: option, &result)
        }
        throw .usage("unexpected argument \(quoted(word))")
    }

    private func add(_ value: String, to option: OptionSpec, _ result: inout ParsedArguments) throws(Failure) {
        let before = result.values[option.name, default: []]
        if option.placeholder == nil {
            result.values[option.name] = [""]
        } else if before.isEmpty || option.isRepeatable {
            result.values[option.name] = before + [value]
        } else {
            throw .usage(option: option.name, "given twice")
        }
    }

    private func unknown(_ word: String, among known: [String]) -> Failure {
        .usage(
            "unknown option \(quoted(word))",
            advice: Suggestion.closest(to: word, among: known).map { "Did you mean \($0)?" }
        )
    }

    private func quoted(_ text: String) -> String { PlainText.quoted(text) }

    private func printable(_ text: String) -> String { PlainText.printable(text, limit: Limits.quotedValue) }
}
