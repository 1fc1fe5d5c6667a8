// SPDX-License-Identifier: MIT

import DeviceSession
import NearbyDiscoveryKit

/// `nearby device services`: the GATT tree.
struct DeviceServicesCommand: RadioCommand {
    static let spec = CommandSpec(
        name: "device services",
        summary: "list a device's services and characteristics",
        synopsis: "--device ADDRESS|NAME [OPTIONS]",
        options: DeviceWay.options + OptionSpec.radio + OptionSpec.output,
        notes: ["Names are those of the Bluetooth SIG's Assigned Numbers, a part of them, and a few common others."],
        examples: ["nearby device services --device 00:1A:7D:DA:71:13", "nearby device services -d Meter --json"]
    )

    let output: OutputOptions
    private let way: DeviceWay
    var radio: RadioOptions { way.radio }

    init(_ values: OptionValues) throws(Failure) {
        output = try OutputOptions(values)
        way = try DeviceWay(values)
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        let visit = DeviceVisit(way: way, context: context)
        // The facts come last, and with them everything has been found.
        try await visit.run(until: .deviceInfoReady) { session in
            if output.json {
                context.console.result(JSONLine.text(DeviceReport.json(session.services, of: session.device)))
            } else {
                context.console.results(DeviceReport.lines(session.services))
                if session.services.isEmpty { context.console.note("The device has no services.") }
            }
        }
        return .done
    }
}
