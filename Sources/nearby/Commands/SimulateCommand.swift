// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// `nearby simulate`: BlueZ without Bluetooth.
struct SimulateCommand: Command {
    static let spec = CommandSpec(
        name: "simulate",
        summary: "run a simulated BlueZ with adapters that hear each other",
        synopsis: "[--bus ADDRESS] [--adapters N] [OPTIONS]",
        options: [
            .value("bus", nil, "ADDRESS", "the bus to own org.bluez on (default: a private one, started for it)"),
            .value("adapters", nil, "N", "how many adapters, 1 to \(Limits.simulatedAdapters) (default: 2)"),
            .flag("device", nil, "with a device to talk to: \(SimulatedUART.name), for `nearby device`"),
            .value("timeout", "t", "TIME", "end after TIME, such as 10m (default: run until Ctrl-C)"),
        ] + OptionSpec.output,
        notes: ["The adapters are hci0, hci1 and so on. Give each process its own: --adapter hci0."],
        examples: [
            "nearby simulate",
            "nearby host --bus ADDRESS --adapter hci0 --app-id com.example.chat --payload roomCode=SWIFT42",
            "nearby join --bus ADDRESS --adapter hci1 --app-id com.example.chat",
        ]
    )

    let output: OutputOptions
    let bus: String?
    let adapters: Int
    let hasDevice: Bool
    let timeout: Duration?

    init(_ values: OptionValues) throws(Failure) {
        output = try OutputOptions(values)
        bus = try values.value("bus", as: .busAddress)
        adapters = try values.value("adapters", as: .count(1...Limits.simulatedAdapters)) ?? 2
        hasDevice = values.flag("device")
        timeout = try values.value("timeout", as: .time)
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        let simulation = try await Simulation.start(bus: bus, adapters: adapters, hasDevice: hasDevice)
        report(simulation, context.console)
        context.console.status("Simulating (Ctrl-C ends)")
        let limit = TimeLimit(timeout, on: context.loop)
        let ending = await limit.run { () async -> Failure? in
            await withTaskCancellationHandler {
                await simulation.ended()
            } onCancel: {
                simulation.cancel()
            }
        }
        context.console.clearStatus()
        await simulation.stop()
        if let ending { throw ending }
        return .done
    }

    private func report(_ simulation: Simulation, _ console: Console) {
        if output.json {
            let adapters = simulation.adapters.map { adapter in
                JSONValue.object(["name": .string(adapter.name), "address": .string(adapter.address.description)])
            }
            console.result(
                JSONLine.text(["event": "simulating", "bus": .string(simulation.bus), "adapters": .array(adapters)])
            )
            return
        }
        console.result(TextTable.line("bus", PlainText.printable(simulation.bus, limit: Limits.busAddressBytes)))
        for adapter in simulation.adapters {
            console.result(TextTable.line("adapter", "\(adapter.name)  \(adapter.address)"))
        }
        if hasDevice { console.note("`nearby device` finds \(SimulatedUART.name).") }
        for line in Self.next(bus: simulation.bus, adapters: simulation.adapters.map(\.name)) { console.note(line) }
    }

    /// What to type in two other terminals: each side needs an adapter of its own, or they never hear each other.
    static func next(bus: String, adapters: [String]) -> [String] {
        guard adapters.count > 1 else { return [] }
        // Quoted: an address may hold a semicolon. One that holds a quote is left to whoever gave it.
        let address = PlainText.printable(bus, limit: Limits.busAddressBytes)
        let place = bus.contains("'") ? "--bus ADDRESS" : "--bus '\(address)'"
        let app = "--app-id com.example.chat"
        return [
            "In two other terminals:",
            "  nearby host \(app) --payload roomCode=SWIFT42 \(place) --adapter \(adapters[0])",
            "  nearby join \(app) \(place) --adapter \(adapters[1])",
        ]
    }
}
