// SPDX-License-Identifier: MIT

import BridgeRadio
import EmulatorBridge
import NearbyDiscoveryKit
import SimulatedRadio

/// `nearby bridge`: Bluetooth for emulators, containers and virtual machines.
struct BridgeCommand: Command {
    static let spec = CommandSpec(
        name: "bridge",
        summary: "give emulators, containers and virtual machines this machine's Bluetooth",
        synopsis: "[--listen HOST:PORT] [--radio bluez|simulated] [OPTIONS]",
        options: [
            .value("listen", nil, "HOST:PORT", "where to listen (default: \(BridgeEndpoint.loopback))"),
            .value(
                "radio", nil, "NAME", "bluez, or simulated: one adapter a client (default: bluez)"),
            .token, .tokenFile,
            .value("max-clients", nil, "N", "clients at the same time, 1 to 256 (default: 32)"),
            .value("timeout", "t", "TIME", "end after TIME, such as 10m (default: run until Ctrl-C)"),
            .adapter, .bus,
        ] + OptionSpec.output,
        notes: [
            "Speaks the TCP protocol of BLEForEmulator, version 1, and an extension of it that `--radio bridge:HOST:PORT` "
                + "of host, join, scan and device uses. An Android emulator reaches it at 10.0.2.2:\(BridgeEndpoint.defaultPort).",
            "An address that other machines can reach needs a token. The token and everything else travel in the clear: "
                + "use it in networks that you trust, or through ssh.",
        ],
        examples: [
            "nearby bridge",
            "nearby bridge --adapter hci1 --max-clients 4",
            "nearby bridge --radio simulated",
        ]
    )

    let output: OutputOptions
    let configuration: BridgeConfiguration
    let isSimulated: Bool
    let timeout: Duration?
    private let bus: String?
    private let adapter: String?

    init(_ values: OptionValues) throws(Failure) {
        output = try OutputOptions(values)
        isSimulated = try values.value("radio", as: .bridgedRadio) == .simulated
        if isSimulated {
            try values.refuse("radio", with: "adapter", where: "--radio simulated and --adapter exclude each other")
            try values.refuse("radio", with: "bus", where: "--radio simulated and --bus exclude each other")
        }
        bus = try values.value("bus", as: .busAddress)
        adapter = try values.value("adapter", as: .adapter)
        timeout = try values.value("timeout", as: .time)
        configuration = BridgeConfiguration(
            endpoint: try values.value("listen", as: .endpoint) ?? .loopback,
            token: try TokenArguments.token(values),
            maximumClients: try values.value("max-clients", as: .count(1...256)) ?? 32
        )
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        let radios: BridgeRadios
        let bridge: EmulatorBridge
        let endpoint: BridgeEndpoint
        do throws(BluetoothError) {
            radios = try self.radios()
            bridge = try EmulatorBridge(radios: radios, configuration: configuration)
            endpoint = try await bridge.start()
        } catch {
            guard error.code == .unauthorized else { throw Failure(error) }
            throw .usage(
                option: "listen",
                "\(configuration.endpoint) can be reached from other machines: that needs --token or --token-file"
            )
        }
        let report = BridgeReport(context.console, endpoint: endpoint, isSimulated: isSimulated)
        report.begin(hasToken: configuration.token != nil)
        let events = bridge.events
        let reading = Task(executorPreference: context.loop) {
            for await event in events { report.show(event) }
        }
        let watching = watch(radios, context)
        let limit = TimeLimit(timeout, on: context.loop)
        await limit.run { [loop = context.loop] in
            while !Task.isCancelled { await loop.sleep(for: Limits.timeout) }
        }
        context.console.clearStatus()
        watching?.cancel()
        // A task of its own: this one may be cancelled, and the clients' links have to be taken down all the same.
        await Task(executorPreference: context.loop) { await bridge.stop() }.value
        await reading.value
        return .done
    }

    /// Tells whoever runs the bridge why its clients have no Bluetooth.
    private func watch(_ radios: BridgeRadios, _ context: CommandContext) -> Task<Void, Never>? {
        guard case .shared(let radio) = radios else { return nil }
        return Task(executorPreference: context.loop) {
            for await status in radio.adapterStatuses() {
                if let reason = status.reason { context.console.waiting(for: reason) }
            }
        }
    }

    private func radios() throws(BluetoothError) -> BridgeRadios {
        if isSimulated {
            let medium = SimulatedMedium(clock: ContinuousClock())
            return .each { medium.addAdapter() }
        }
        do throws(NearbyError) {
            return .shared(try DefaultRadio.make(bus: bus, adapter: adapter))
        } catch {
            throw error.cause ?? BluetoothError(.adapterNotFound, error.message, advice: error.advice)
        }
    }
}

/// What a bridge can have behind it.
enum BridgedRadio: String, CaseIterable, Sendable {
    case bluez, simulated
}

extension ValueType<BridgedRadio> {
    static var bridgedRadio: Self { Self(expected: "bluez or simulated") { BridgedRadio(rawValue: $0) } }
}

extension ValueType<BridgeEndpoint> {
    static var endpoint: Self {
        Self(expected: "HOST:PORT such as \(BridgeEndpoint.loopback) or [::1]:\(BridgeEndpoint.defaultPort)") {
            BridgeEndpoint($0)
        }
    }
}
