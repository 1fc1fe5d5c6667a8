// SPDX-License-Identifier: MIT

import DeviceSession
import NearbyDiscoveryKit

/// `nearby device info`: what a device says about itself.
struct DeviceInfoCommand: RadioCommand {
    static let spec = CommandSpec(
        name: "device info",
        summary: "show a device's battery level, manufacturer, model and versions",
        synopsis: "--device ADDRESS|NAME [OPTIONS]",
        options: DeviceWay.options + OptionSpec.radio + OptionSpec.output,
        notes: ["What the device has not, or does not let us read without pairing, is left out."],
        examples: ["nearby device info --device 00:1A:7D:DA:71:13", "nearby device info -d Meter --json"]
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
        try await visit.run(until: .deviceInfoReady) { session in
            let facts = session.facts
            if output.json {
                context.console.result(JSONLine.text(DeviceReport.json(facts, of: session.device)))
            } else {
                context.console.results(DeviceReport.lines(facts, of: session.device))
                if facts == DeviceFacts() { context.console.note("The device says nothing about itself.") }
            }
        }
        return .done
    }
}
