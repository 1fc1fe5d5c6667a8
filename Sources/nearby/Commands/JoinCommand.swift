// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit

/// `nearby join`: get the payload of a host nearby.
struct JoinCommand: RadioCommand {
    static let spec = CommandSpec(
        name: "join",
        summary: "find a host nearby and get its payload",
        synopsis: "--app-id ID [OPTIONS]",
        options: [
            .appId,
            .value("min-rssi", nil, "DBM", "leave hosts alone whose signal is weaker, -127 to 0, such as -60"),
            .value("select", "s", "HOW", "first, strongest (of the first 2 s) or manual (default: first)"),
            .value("timeout", "t", "TIME", "give up after TIME, such as 30s or 2m (default: 30s)"),
            .value("payload", "p", "KEY=VALUE", repeatable: true, "send along with the request; KEY:=JSON as in host"),
            .value("payload-file", nil, "FILE", "send the JSON object in FILE along (- for stdin)"),
            .value("session-id", nil, "UUID", "the session to ask for; a host may ignore it"),
            .value("passcode", nil, "CODE", "the host's passcode, or - for stdin (default: asked for where needed)"),
            .passcodeFile, .profile,
            .value("output", "o", "DIR", "save the file that the host attached in DIR"),
        ] + OptionSpec.radio + OptionSpec.output,
        operandsOption: "payload",
        notes: [
            "The payload is printed as soon as it is there; the process ends when the link is down, about 2 s later.",
            "Signal strength is a convenience, not a security boundary. Only a passcode proves that the host is the one "
                + "that is meant; without one the exchange is sealed, unauthenticated, or plain text with today's phones.",
            "The passcode is better typed when asked for, or read from --passcode-file, stdin or NEARBY_PASSCODE, than "
                + "given as an option: a shell keeps its history.",
        ],
        examples: [
            "nearby join --app-id com.example.chat",
            "nearby join --app-id com.example.chat --min-rssi -60 --select strongest",
            "nearby join -a com.example.chat --json -q | jq -r .payload.roomCode",
        ]
    )

    let output: OutputOptions
    let configuration: NearbyClient.Configuration
    private let folder: OutputFolder?
    let radio: RadioOptions

    init(_ values: OptionValues) throws(Failure) {
        output = try OutputOptions(values)
        radio = try RadioOptions(values)
        let selection: HostSelection =
            switch try values.value("select", as: .selection) {
            case .strongest: .strongest(within: .seconds(2))
            case .manual: .manual
            case .first, nil: .first
            }
        configuration = NearbyClient.Configuration(
            appId: try values.required("app-id", as: .appId),
            sessionId: try values.value("session-id", as: .uuid),
            payload: try PayloadArguments.payload(values),
            minimumRSSI: try values.value("min-rssi", as: .rssi),
            selection: selection,
            timeout: try values.value("timeout", as: .time) ?? .seconds(30),
            whenUnavailable: radio.whenUnavailable,
            profile: try values.value("profile", as: .profile) ?? .auto,
            security: try Self.security(values)
        )
        folder = if let path = values.texts("output").first { try OutputFolder(path) } else { nil }
        if selection == .manual, isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0 {
            throw .usage(option: "select", "manual asks at the terminal, and there is none; use first or strongest")
        }
    }

    private static func security(_ values: OptionValues) throws(Failure) -> NearbySecurity {
        if case .given(let passcode) = try PasscodeArguments.source(values, allowsRandom: false) {
            return .passcode(passcode)
        }
        return .open
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        var configuration = configuration
        var prompts = 0
        let typed = TypedLines()
        while true {
            let result = try await join(configuration, typed, context)
            guard case .failure(let error) = result else { return .done }
            let mayAsk = PasscodePrompt.isPossible && !Task.isCancelled && prompts < Limits.passcodePrompts
            guard mayAsk, error.isPasscodeNeeded || prompts > 0 && error.code == .wrongPasscode else {
                throw Failure(error)
            }
            let question = prompts == 0 ? "Passcode: " : "That was not it. Passcode: "
            prompts += 1
            guard let text = await PasscodePrompt.ask(question, typed, on: context.console) else {
                throw Failure(error)
            }
            configuration.security = .passcode(try PasscodeArguments.passcode(text, from: "the terminal"))
        }
    }

    /// One search, with whatever passcode there is.
    private func join(
        _ configuration: NearbyClient.Configuration,
        _ typed: TypedLines,
        _ context: CommandContext
    ) async throws(Failure) -> Result<Handoff, NearbyError> {
        let client: NearbyClient
        do throws(NearbyError) {
            client = try NearbyClient(configuration, radio: try await radio.radio(telling: context.console))
        } catch {
            throw Failure(error)
        }
        let report = JoinReport(configuration, context.console)
        if configuration.selection == .manual {
            typed.route { line in
                if let peer = report.chosen(line) { client.choose(peer) }
            }
        }
        let events = client.events()
        let reading = Task(executorPreference: context.loop) {
            for await event in events { report.show(event) }
        }
        let result: Result<Handoff, NearbyError>
        do throws(NearbyError) {
            result = .success(try await client.join())
        } catch {
            result = .failure(error)
        }
        await reading.value
        var failure: Failure?
        if case .success(let handoff) = result {
            do throws(Failure) {
                report.finish(handoff, savedAs: try save(handoff, context))
            } catch {
                report.finish(handoff, savedAs: nil)
                failure = error
            }
        }
        // The link is ours to take down, however the join ended: BlueZ keeps it when a process dies.
        await client.finish()
        context.console.clearStatus()
        if let failure { throw failure }
        return result
    }

    private func save(_ handoff: Handoff, _ context: CommandContext) throws(Failure) -> String? {
        guard let folder else { return nil }
        guard let attachment = try Attachment(handoff.payload) else {
            context.console.note("The host has attached no file.")
            return nil
        }
        return try folder.save(attachment)
    }
}
