// SPDX-License-Identifier: MIT

import BridgeRadio
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
    /// `nil`: chosen, as an app's is.
    var name: RadioName?
    /// The bridge's.
    var token: String?

    init(bus: String? = nil, adapter: String? = nil, wait: Bool = false, name: RadioName? = nil) {
        self.bus = bus
        self.adapter = adapter
        self.wait = wait
        self.name = name
    }

    init(_ values: OptionValues) throws(Failure) {
        bus = try values.value("bus", as: .busAddress)
        adapter = try values.value("adapter", as: .adapter)
        wait = values.flag("wait")
        name = try values.value("radio", as: .radio)
        if case .bridge = name {
            try values.refuse("radio", with: "adapter", where: "--radio bridge and --adapter exclude each other")
            try values.refuse("radio", with: "bus", where: "--radio bridge and --bus exclude each other")
            token = try TokenArguments.token(values)
        } else if values.flag("token") || values.flag("token-file") {
            throw .usage("a token is for --radio bridge:HOST:PORT")
        }
    }

    var whenUnavailable: UnavailablePolicy { wait ? .wait : .fail(after: .seconds(3)) }

    func radio(telling console: Console) async throws(NearbyError) -> any Radio {
        switch name {
        case .bridge(let address):
            return try DefaultRadio.bridge(address, token: token)
        case nil where bus == nil && adapter == nil:
            let radio = try await DefaultRadio.choose()
            if let bridge = (radio as? BridgeRadio)?.endpoint {
                console.note("No adapter here: using the bridge at \(bridge)")
            }
            return radio
        case nil, .bluez:
            // Whoever names a bus or an adapter means this machine's.
            return try DefaultRadio.make(bus: bus, adapter: adapter)
        }
    }
}

extension RadioOptions {
    /// What the facade says, too, of a radio that nobody has named: the Bluetooth of another machine would do.
    func namingBridges(_ failure: Failure, _ environment: (String) -> String? = DefaultRadio.environment) -> Failure {
        let isMissing = failure.exitCode == .noAdapter || failure.exitCode == .serviceUnavailable
        // Whoever has named an adapter, or a bridge, has another question.
        guard isMissing, name == nil || name == .bluez, adapter == nil, environment(DefaultRadio.bridgeVariable) == nil
        else { return failure }
        var failure = failure
        let bridge =
            "Or use another machine's Bluetooth: run `nearby bridge` there, and give --radio bridge:HOST:PORT, or set "
            + "\(DefaultRadio.bridgeVariable) to its HOST:PORT."
        failure.advice = [failure.advice, bridge].compactMap { $0 }.joined(separator: " ")
        return failure
    }
}

/// A radio by its name on the command line.
enum RadioName: Sendable, Equatable {
    case bluez
    /// With its address.
    case bridge(String)
}

extension ValueType<RadioName> {
    static var radio: Self {
        Self(expected: "bluez, or bridge:HOST:PORT such as bridge:192.0.2.7:7877") { text in
            if text == "bluez" { return .bluez }
            guard text.hasPrefix("bridge:") else { return nil }
            let address = String(text.dropFirst("bridge:".count))
            guard let endpoint = BridgeEndpoint(address), endpoint.port > 0 else { return nil }
            return .bridge(endpoint.description)
        }
    }
}
