// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// `nearby host`: hand a payload to whoever asks.
struct HostCommand: Command {
    static let spec = CommandSpec(
        name: "host",
        summary: "offer a payload to devices nearby",
        synopsis: "--app-id ID (--payload KEY=VALUE… | --payload-file FILE) [OPTIONS]",
        options: [
            .appId, .payload, .payloadFile, .sessionId,
            .value("name", "n", "NAME", "the name to advertise, at most 29 bytes (default: none)"),
            .flag("once", nil, "end after the first delivery"),
            .value("max-joins", nil, "N", "end after N deliveries"),
            .value("timeout", "t", "TIME", "end after TIME, such as 30s or 5m (default: serve until Ctrl-C)"),
        ] + OptionSpec.radio + OptionSpec.output,
        operandsOption: "payload",
        notes: [
            "Every device of the same app in radio range can have the payload, and it travels in plain text: hand over "
                + "an invitation, not a secret.",
            "With --once or --max-joins a host that --timeout ends too early exits with 75; without, with 0.",
        ],
        examples: [
            "nearby host --app-id com.example.chat --payload roomCode=SWIFT42",
            "nearby host --app-id com.example.chat --payload room=7 seats:=4 --once --timeout 2m",
            "echo '{\"roomCode\":\"SWIFT42\"}' | nearby host -a com.example.chat --payload-file - --json",
        ]
    )

    let output: OutputOptions
    let configuration: NearbyHost.Configuration
    let timeout: Duration?
    private let radio: RadioOptions

    init(_ values: OptionValues) throws(Failure) {
        output = try OutputOptions(values)
        radio = try RadioOptions(values)
        timeout = try values.value("timeout", as: .time)
        try values.refuse("once", with: "max-joins")
        let joins = try values.value("max-joins", as: .count(1...Limits.joins))
        var configuration = NearbyHost.Configuration(
            appId: try values.required("app-id", as: .appId),
            name: try values.value("name", as: .advertisedName),
            maximumHandoffs: values.flag("once") ? 1 : joins,
            whenUnavailable: radio.whenUnavailable
        )
        if let session = try values.value("session-id", as: .uuid) { configuration.sessionId = session }
        guard let payload = try PayloadArguments.payload(values) else {
            throw .usage("a payload is missing: give --payload KEY=VALUE or --payload-file FILE")
        }
        configuration.payload = payload
        self.configuration = configuration
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        let host: NearbyHost
        do throws(NearbyError) {
            host = try NearbyHost(configuration, radio: try radio.radio())
        } catch {
            throw Failure(error)
        }
        let report = HostReport(configuration, context.console)
        report.begin(notices: host.notices)
        let events = host.events()
        let reading = Task(executorPreference: context.loop) {
            for await event in events { report.show(event) }
        }
        let limit = TimeLimit(timeout, on: context.loop)
        let ending = await limit.run { () async -> NearbyError? in
            do throws(NearbyError) {
                try await host.run()
                return nil
            } catch {
                return error
            }
        }
        await reading.value
        report.end()
        guard let ending else { return .done }
        guard ending.code == .cancelled, limit.isOver else { throw Failure(ending) }
        guard configuration.maximumHandoffs != nil else { return .done }
        throw Failure(
            .nothingFound,
            code: NearbyError.Code.nothingFound.description,
            report.deliveries == 0 ? "the time was up before anybody joined" : "the time was up before all had joined"
        )
    }
}
