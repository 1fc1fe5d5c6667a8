// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit

/// `nearby join`: get the payload of a host nearby.
struct JoinCommand: Command {
    static let spec = CommandSpec(
        name: "join",
        summary: "find a host nearby and get its payload",
        synopsis: "--app-id ID [OPTIONS]",
        options: [
            .appId,
            .value("min-rssi", nil, "DBM", "leave hosts alone whose signal is weaker, such as -60"),
            .value("select", "s", "HOW", "first, strongest (of the first 2 s) or manual (default: first)"),
            .value("timeout", "t", "TIME", "give up after TIME, such as 30s or 2m (default: 30s)"),
            .value("payload", "p", "KEY=VALUE", repeatable: true, "send along with the request; KEY:=JSON as in host"),
            .value("payload-file", nil, "FILE", "send the JSON object in FILE along (- for stdin)"),
            .value("session-id", nil, "UUID", "the session to ask for; a host may ignore it"),
        ] + OptionSpec.radio + OptionSpec.output,
        operandsOption: "payload",
        notes: [
            "The payload is printed as soon as it is there; the process ends when the link is down, about 2 s later.",
            "Signal strength is a convenience, not a security boundary. Nothing proves who the host is.",
        ],
        examples: [
            "nearby join --app-id com.example.chat",
            "nearby join --app-id com.example.chat --min-rssi -60 --select strongest",
            "nearby join -a com.example.chat --json -q | jq -r .payload.roomCode",
        ]
    )

    let output: OutputOptions
    let configuration: NearbyClient.Configuration
    private let radio: RadioOptions

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
            whenUnavailable: radio.whenUnavailable
        )
        if selection == .manual, isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0 {
            throw .usage(option: "select", "manual asks at the terminal, and there is none; use first or strongest")
        }
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        let client: NearbyClient
        do throws(NearbyError) {
            client = try NearbyClient(configuration, radio: try radio.radio())
        } catch {
            throw Failure(error)
        }
        let report = JoinReport(configuration, context.console)
        if configuration.selection == .manual {
            LineReader.start(STDIN_FILENO) { line in
                if let peer = report.chosen(line) { client.choose(peer) }
            } atEnd: {
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
        if case .success(let handoff) = result { report.finish(handoff) }
        // The link is ours to take down, however the join ended: BlueZ keeps it when a process dies.
        await client.finish()
        context.console.clearStatus()
        if case .failure(let error) = result { throw Failure(error) }
        return .done
    }
}
