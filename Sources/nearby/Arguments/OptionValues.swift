// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// Typed access to what was given on the command line.
struct OptionValues: Sendable {
    let spec: CommandSpec
    let parsed: ParsedArguments

    func flag(_ name: String) -> Bool { parsed.values[name] != nil }

    func texts(_ name: String) -> [String] { parsed.values[name] ?? [] }

    func value<Value>(_ name: String, as type: ValueType<Value>) throws(Failure) -> Value? {
        guard let text = parsed.values[name]?.first else { return nil }
        guard let value = type.read(text) else {
            throw .usage(option: name, "\(PlainText.quoted(text)) is not accepted; expected \(type.expected)")
        }
        return value
    }

    func required<Value>(_ name: String, as type: ValueType<Value>) throws(Failure) -> Value {
        guard let value = try value(name, as: type) else {
            throw .usage("--\(name) is missing; expected \(type.expected)")
        }
        return value
    }

    /// The two cannot be meant together.
    func refuse(_ first: String, with second: String, where message: String? = nil) throws(Failure) {
        if flag(first), flag(second) { throw .usage(message ?? "--\(first) and --\(second) exclude each other") }
    }
}

/// How a command prints.
struct OutputOptions: Sendable, Equatable {
    var json = false
    var quiet = false
    var verbose = false

    init(json: Bool = false, quiet: Bool = false, verbose: Bool = false) {
        self.json = json
        self.quiet = quiet
        self.verbose = verbose
    }

    init(_ values: OptionValues) throws(Failure) {
        try values.refuse("quiet", with: "verbose")
        self.init(json: values.flag("json"), quiet: values.flag("quiet"), verbose: values.flag("verbose"))
    }
}

/// Which radio a command uses.
struct RadioOptions: Sendable, Equatable {
    var bus: String?
    var adapter: String?
    var wait: Bool

    init(bus: String? = nil, adapter: String? = nil, wait: Bool = false) {
        self.bus = bus
        self.adapter = adapter
        self.wait = wait
    }

    init(_ values: OptionValues) throws(Failure) {
        bus = try values.value("bus", as: .busAddress)
        adapter = try values.value("adapter", as: .adapter)
        wait = values.flag("wait")
    }

    var whenUnavailable: UnavailablePolicy { wait ? .wait : .fail(after: .seconds(3)) }

    func radio() throws(NearbyError) -> any Radio { try DefaultRadio.make(bus: bus, adapter: adapter) }
}
