// SPDX-License-Identifier: MIT

/// What a command line asks for.
enum Invocation {
    case print(String)
    case run(any Command)

    init(_ words: [String]) throws(Failure) {
        guard let first = words.first else {
            throw .usage("a command is missing: \(Self.names.joined(separator: ", "))")
        }
        switch first {
        case "--version", "-V", "version":
            try Self.refuseMore(words)
            self = .print("nearby \(Program.version)\n")
        case "--help", "-h":
            try Self.refuseMore(words)
            self = .print(Help.overview(Program.commands.map { $0.spec }))
        case "help":
            self = .print(try Self.help(words.dropFirst()))
        default:
            self = try Self.command(first, words.dropFirst())
        }
    }

    /// What a command line can begin with.
    private static var names: [String] {
        Program.commands.reduce(into: []) { names, command in
            let first = command.spec.name.split(separator: " ").first.map(String.init) ?? ""
            if !names.contains(first) { names.append(first) }
        }
    }

    private static func refuseMore(_ words: [String]) throws(Failure) {
        guard words.count == 1 else { throw .usage("unexpected argument \(PlainText.quoted(words[1]))") }
    }

    private static func help(_ words: ArraySlice<String>) throws(Failure) -> String {
        guard let name = words.first else { return Help.overview(Program.commands.map { $0.spec }) }
        let members = group(name)
        guard members.isEmpty else {
            guard words.count > 1 else { return Help.overview(members.map { $0.spec }) }
            return Help.text(try type("\(name) \(words[words.startIndex + 1])").spec)
        }
        return Help.text(try type(name).spec)
    }

    /// The commands of two words whose first is this one.
    private static func group(_ name: String) -> [any Command.Type] {
        Program.commands.filter { $0.spec.name.hasPrefix(name + " ") }
    }

    private static func command(_ first: String, _ rest: ArraySlice<String>) throws(Failure) -> Invocation {
        var (name, words) = (first, rest)
        let members = group(first)
        if !members.isEmpty {
            guard let second = rest.first else {
                throw .usage("\(first) what? \(members.map { $0.spec.name }.joined(separator: ", "))")
            }
            if second == "--help" || second == "-h" { return .print(Help.overview(members.map { $0.spec })) }
            (name, words) = ("\(first) \(second)", rest.dropFirst())
        }
        let type = try type(name)
        do throws(Failure) {
            let parsed = try ArgumentParser(spec: type.spec).parse(words)
            if parsed.values["help"] != nil { return .print(Help.text(type.spec)) }
            return .run(try type.init(OptionValues(spec: type.spec, parsed: parsed)))
        } catch {
            var failure = error
            failure.command = name
            throw failure
        }
    }

    private static func type(_ name: String) throws(Failure) -> any Command.Type {
        if let type = Program.commands.first(where: { $0.spec.name == name }) { return type }
        if name.hasPrefix("-") {
            throw .usage("unknown option \(PlainText.quoted(name))", advice: "The command comes first.")
        }
        throw .usage(
            "unknown command \(PlainText.quoted(name))",
            advice: Suggestion.closest(to: name, among: Program.commands.map { $0.spec.name })
                .map { "Did you mean \($0)?" }
        )
    }
}
