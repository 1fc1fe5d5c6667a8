// SPDX-License-Identifier: MIT

/// One option, as the parser and the help read it.
struct OptionSpec: Sendable, Equatable {
    /// Without its dashes.
    var name: String
    var short: Character?
    /// What stands for the value in the help; `nil`: the option takes none.
    var placeholder: String?
    var isRepeatable: Bool
    var help: String
    /// Whether no message may show its value.
    var isSecret: Bool { name == "passcode" || name == "token" }

    static func flag(_ name: String, _ short: Character? = nil, _ help: String) -> OptionSpec {
        OptionSpec(name: name, short: short, placeholder: nil, isRepeatable: true, help: help)
    }

    static func value(
        _ name: String,
        _ short: Character? = nil,
        _ placeholder: String,
        repeatable: Bool = false,
        _ help: String
    ) -> OptionSpec {
        OptionSpec(name: name, short: short, placeholder: placeholder, isRepeatable: repeatable, help: help)
    }
}

/// One command, as the parser and the help read it.
struct CommandSpec: Sendable, Equatable {
    var name: String
    /// One line for the list of commands.
    var summary: String
    /// The usage line behind `nearby NAME`.
    var synopsis: String
    var options: [OptionSpec]
    /// The option that takes the words which belong to no option, as in `--payload a=1 b=2`; `nil`: there may be none.
    var operandsOption: String?
    /// Paragraphs below the options.
    var notes: [String] = []
    var examples: [String] = []

    /// `options` and those that every command has.
    var allOptions: [OptionSpec] { options + [.flag("help", "h", "show this help")] }
}

extension OptionSpec {
    static let appId = value(
        "app-id", "a", "ID", "the app that both sides name, 1 to 255 bytes, such as com.example.chat"
    )
    static let payload = value(
        "payload", "p", "KEY=VALUE", repeatable: true, "what is handed over; KEY:=JSON for what is not a string"
    )
    static let payloadFile = value(
        "payload-file", nil, "FILE", "read the payload, a JSON object, from FILE (- for stdin)"
    )
    static let sessionId = value("session-id", nil, "UUID", "the session that the handoff names (default: a new one)")
    static let adapter = value("adapter", nil, "NAME|ADDRESS", "the adapter to use, such as hci0 (default: the first)")
    static let bus = value("bus", nil, "ADDRESS", "the D-Bus bus that BlueZ is on (default: the system bus)")
    static let wait = flag("wait", "w", "wait for an adapter instead of failing after 3 s")

    static let output: [OptionSpec] = [
        flag("json", nil, "print one JSON object a line"),
        flag("quiet", "q", "print results and errors only, no notes and no advice"),
        flag("verbose", "v", "tell each step"),
    ]

    static let radioName = value(
        "radio", nil, "NAME", "bluez or bridge:HOST:PORT (default: bluez, else NEARBY_BRIDGE)"
    )

    static let radio: [OptionSpec] = [adapter, bus, radioName, token, tokenFile, wait]
}
