// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// `nearby host`: hand a payload to whoever asks.
struct HostCommand: RadioCommand {
    static let spec = CommandSpec(
        name: "host",
        summary: "offer a payload to devices nearby",
        synopsis: "--app-id ID (--payload KEY=VALUE… | --payload-file FILE | --attach FILE) [OPTIONS]",
        options: [
            .appId, .payload, .payloadFile,
            .value("attach", nil, "FILE", "put a file of at most 48 KiB into the payload"),
            .value("passcode", nil, "CODE", "ask clients for it: 4 to 64 characters, random, or -"),
            .passcodeFile,
            .flag("qr", nil, "show app id and passcode as a QR code, on a terminal"),
            .profile, .sessionId,
            .value("name", "n", "NAME", "the name to advertise, at most 29 bytes (default: none)"),
            .flag("once", nil, "end after the first delivery"),
            .value("max-joins", nil, "N", "end after N deliveries, 1 to \(Limits.joins)"),
            .value("timeout", "t", "TIME", "end after TIME, such as 30s or 5m (default: serve until Ctrl-C)"),
        ] + OptionSpec.radio + OptionSpec.output,
        operandsOption: "payload",
        notes: [
            "Without a passcode every device of the same app in radio range can have the payload. It travels sealed, "
                + "unauthenticated to clients of this program, and in plain text to today's phones: hand over an "
                + "invitation, not a secret. With one it is sealed and authenticated, and phones are refused.",
            "The passcode is better read from --passcode-file, from stdin or from NEARBY_PASSCODE than given as an "
                + "option: a shell keeps its history.",
            "With --once or --max-joins a host that --timeout ends too early exits with 75; without, with 0.",
        ],
        examples: [
            "nearby host --app-id com.example.chat --payload roomCode=SWIFT42",
            "nearby host --app-id com.example.chat --payload room=7 seats:=4 --once --timeout 2m",
            "nearby host --app-id com.example.files --attach plan.pdf --passcode random --qr --once",
            "echo '{\"roomCode\":\"SWIFT42\"}' | nearby host -a com.example.chat --payload-file - --json",
        ]
    )

    let output: OutputOptions
    let configuration: NearbyHost.Configuration
    let timeout: Duration?
    /// One that was made up, to be shown.
    private let madeUp: Passcode?
    /// The one to show as a QR code.
    private let pictured: Passcode?
    /// The file to put into the payload.
    private let attached: String?
    let radio: RadioOptions

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
        attached = values.texts("attach").first
        guard let payload = try PayloadArguments.payload(values) ?? (attached == nil ? nil : [:]) else {
            throw .usage("a payload is missing: give --payload KEY=VALUE, --payload-file FILE or --attach FILE")
        }
        configuration.payload = payload
        configuration.profile = try values.value("profile", as: .profile) ?? .auto
        let source = try PasscodeArguments.source(values, allowsRandom: true)
        let passcode = source.passcode()
        if let passcode { configuration.security = .passcode(passcode) }
        madeUp = source == .random ? passcode : nil
        try values.refuse("qr", with: "json")
        if values.flag("qr"), passcode == nil {
            throw .usage(option: "qr", "there is no passcode to show; give --passcode random")
        }
        pictured = values.flag("qr") ? passcode : nil
        self.configuration = configuration
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        var configuration = configuration
        if let attached { try Attachment(reading: attached).add(to: &configuration.payload) }
        if pictured != nil, !context.console.errorsAreTerminal {
            // Anywhere else it would only be a passcode in some file.
            throw .usage(option: "qr", "a QR code is for a terminal, and standard error is none")
        }
        let host: NearbyHost
        do throws(NearbyError) {
            host = try NearbyHost(configuration, radio: try await radio.radio(telling: context.console))
        } catch {
            throw Failure(error)
        }
        let report = HostReport(configuration, on: radio, context.console)
        report.begin(notices: host.notices)
        // For the person at the host and nobody else: never in --json, and with --quiet all the same.
        if let madeUp { context.console.error("Passcode: \(madeUp.reveal())") }
        if let pictured { report.picture(pictured) }
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
        if let failure = report.failureToServe { throw Failure(failure) }
        guard configuration.maximumHandoffs != nil else { return .done }
        throw Failure(
            .nothingFound,
            code: NearbyError.Code.nothingFound.description,
            report.deliveries == 0 ? "the time was up before anybody joined" : "the time was up before all had joined",
            advice: "Does the other side look for the same --app-id, near enough? Give it more time with --timeout."
        )
    }
}
