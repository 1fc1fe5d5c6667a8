// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// `nearby scan`: what can be heard.
struct ScanCommand: RadioCommand {
    static let spec = CommandSpec(
        name: "scan",
        summary: "list hosts nearby, or all Bluetooth LE devices",
        synopsis: "[OPTIONS]",
        options: [
            .flag("all", nil, "list every device, not only hosts"),
            .value("min-rssi", nil, "DBM", "leave out devices whose signal is weaker, -127 to 0, such as -60"),
            .value("timeout", "t", "TIME", "end after TIME, such as 10s (default: scan until Ctrl-C)"),
        ] + OptionSpec.radio + OptionSpec.output,
        notes: [
            "On a terminal the list is redrawn in place; elsewhere a line is printed for each device, and again when "
                + "its name, its services or its signal (by 10 dB) have changed.",
            "A host's app is not advertised: the list tells who serves the protocol, and only a join tells which app.",
        ],
        examples: ["nearby scan", "nearby scan --all --timeout 10s --json"]
    )

    let output: OutputOptions
    let filter: ScanFilter
    let timeout: Duration?
    let radio: RadioOptions

    init(_ values: OptionValues) throws(Failure) {
        output = try OutputOptions(values)
        radio = try RadioOptions(values)
        timeout = try values.value("timeout", as: .time)
        var services: Set<BluetoothUUID> = []
        if !values.flag("all"), let service = BluetoothUUID(NearbyService.service) { services = [service] }
        filter = ScanFilter(services: services, minimumRSSI: try values.value("min-rssi", as: .rssi))
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        let report = ScanReport(context, minimumRSSI: filter.minimumRSSI)
        let radio: any Radio
        do throws(NearbyError) {
            radio = try await self.radio.radio(telling: context.console)
        } catch {
            throw Failure(error)
        }
        let limit = TimeLimit(timeout, on: context.loop)
        let ending = await limit.run { [self] () async -> BluetoothError? in
            do throws(BluetoothError) {
                try await scan(radio, report, context)
                return nil
            } catch {
                return error
            }
        }
        report.end()
        if let ending { throw Failure(ending) }
        guard report.count == 0, limit.isOver else { return .done }
        throw Self.nothing(far: report.farCount, of: filter)
    }

    /// - Parameter far: devices heard, none near enough.
    static func nothing(far: Int, of filter: ScanFilter) -> Failure {
        let all = filter.services.isEmpty
        let noun = all ? "device" : "host"
        let code = NearbyError.Code.nothingFound.description
        guard far == 0 else {
            let count = far == 1 ? "one \(noun) was" : "\(far) \(noun)s were"
            let advice = "Come closer, or ask for a lower --min-rssi."
            return Failure(.nothingFound, code: code, "\(count) heard, none near enough", advice: advice)
        }
        let advice = all ? nil : "`nearby scan --all` lists other devices, too."
        return Failure(.nothingFound, code: code, "no \(noun) was heard", advice: advice)
    }

    private func scan(
        _ radio: any Radio,
        _ report: ScanReport,
        _ context: CommandContext
    ) async throws(BluetoothError) {
        try await RadioWait(radio: radio, policy: self.radio.whenUnavailable, context: context).untilReady()
        let scan: Scan
        do throws(BluetoothError) {
            // Without the minimum: what is too far is counted, and told if nothing else is heard.
            scan = try await radio.scan(for: ScanFilter(services: filter.services))
        } catch {
            // The time was up before there was a scan: nobody can have been heard.
            throw error.code == .cancelled ? .noAnswer : error
        }
        context.console.status("Scanning… (Ctrl-C ends)")
        for await event in scan.events { report.show(event) }
        // A task of its own: this one may be cancelled, and the radio must be told all the same.
        await Task(executorPreference: context.loop) { await scan.stop() }.value
    }
}
