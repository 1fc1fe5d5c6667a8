// SPDX-License-Identifier: MIT

/// The texts of `--help`.
enum Help {
    static func overview(_ commands: [CommandSpec]) -> String {
        var lines = [
            "nearby: hand a small payload to a device nearby, over Bluetooth LE",
            "",
            "Usage:",
            "  nearby COMMAND [OPTIONS]",
            "",
            "Commands:",
        ]
        lines += TextTable.lines(commands.map { ["  " + $0.name, $0.summary] })
        lines += ["", "Options:"]
        lines += TextTable.lines([["  -h, --help", "show this help"], ["  -V, --version", "show the version"]])
        lines += ["", "`nearby COMMAND --help` explains a command.", ""]
        lines += exitCodes
        return lines.map { $0 + "\n" }.joined()
    }

    static func text(_ spec: CommandSpec) -> String {
        var lines = ["nearby \(spec.name): \(spec.summary)", "", "Usage:"]
        lines.append("  nearby \(spec.name) \(spec.synopsis)")
        lines += ["", "Options:"]
        lines += TextTable.lines(spec.allOptions.map { [column($0), $0.help] })
        for note in spec.notes { lines += [""] + wrapped(note) }
        if !spec.examples.isEmpty { lines += ["", "Examples:"] + spec.examples.map { "  " + $0 } }
        lines += ["", "`nearby --help` lists the exit codes."]
        return lines.map { $0 + "\n" }.joined()
    }

    private static func column(_ option: OptionSpec) -> String {
        let short = option.short.map { "-\($0), " } ?? "    "
        let value = option.placeholder.map { " \($0)" } ?? ""
        return "  \(short)--\(option.name)\(value)"
    }

    private static var exitCodes: [String] {
        ["Exit codes:"] + TextTable.lines(ExitCode.allCases.map { ["  \($0.rawValue)", $0.meaning] })
    }

    private static func wrapped(_ text: String, columns: Int = 79) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > columns {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return lines + [line]
    }
}
