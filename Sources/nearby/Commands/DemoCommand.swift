// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// `nearby demo`: a whole handoff without Bluetooth hardware.
struct DemoCommand: Command {
    static let spec = CommandSpec(
        name: "demo",
        summary: "show a whole handoff without Bluetooth hardware",
        synopsis: "[OPTIONS]",
        options: [
            .value("payload", "p", "KEY=VALUE", repeatable: true, "hand this over (default: a room code made up)"),
            .value("timeout", "t", "TIME", "give up after TIME (default: 60s)"),
        ] + OptionSpec.output,
        operandsOption: "payload",
        notes: [
            "Runs `nearby host` and `nearby join` as two processes on a private bus with a simulated BlueZ: the same "
                + "code as on a radio.",
            "Ends with 0 only if the client printed what the host was given.",
        ],
        examples: ["nearby demo", "nearby demo --payload roomCode=SWIFT42 -v"]
    )

    static let appId = "com.example.demo"

    let output: OutputOptions
    let payload: NearbyPayload
    let timeout: Duration

    init(_ values: OptionValues) throws(Failure) {
        output = try OutputOptions(values)
        timeout = try values.value("timeout", as: .time) ?? .seconds(60)
        // Made up anew each time: nobody can have it who was not handed it.
        payload = try PayloadArguments.payload(values) ?? ["roomCode": .string("SWIFT\(Int.random(in: 10...99))")]
    }

    func run(_ context: CommandContext) async throws(Failure) -> ExitCode {
        context.console.status("Starting a private bus and a simulated BlueZ…")
        let simulation = try await Simulation.start(bus: nil, adapters: 2)
        let limit = TimeLimit(timeout, on: context.loop)
        let result = await limit.run { [self] () async -> Result<Bool, Failure> in
            do throws(Failure) {
                return .success(try await handOver(simulation, context))
            } catch {
                return .failure(error)
            }
        }
        await simulation.stop()
        context.console.clearStatus()
        guard try result.get() else {
            let why = limit.isOver ? "was not done in \(TimeText.print(timeout))" : "failed"
            throw .internal("the handoff \(why)")
        }
        context.console.note("The client printed what the host was given: the handoff works.")
        return .done
    }

    /// - Returns: whether the client printed the payload, and both ended well.
    private func handOver(_ simulation: Simulation, _ context: CommandContext) async throws(Failure) -> Bool {
        let program = "/proc/self/exe"
        let transcript = DemoTranscript(context.console)
        let (hosting, isHosting) = AsyncStream.makeStream(of: Void.self)
        let host = try ChildProcess(program, hostArguments(simulation)) { line, isError in
            transcript.take(line, from: .host, isError: isError)
            isHosting.finish()
        }
        // The first line that it prints says that it serves; if it prints none, its end ends the wait.
        let ended = Task(executorPreference: context.loop) {
            let status = await host.ended()
            isHosting.finish()
            return status
        }
        for await _ in hosting {}
        let client: ChildProcess
        do throws(Failure) {
            client = try ChildProcess(program, clientArguments(simulation)) { line, isError in
                transcript.take(line, from: .client, isError: isError)
            }
        } catch {
            host.terminate()
            _ = await ended.value
            throw error
        }
        let statuses = await withTaskCancellationHandler {
            let clientStatus = await client.ended()
            // The host ends by itself once its client has left; one whose client has failed would wait on.
            if clientStatus != 0 { host.terminate() }
            return (client: clientStatus, host: await ended.value)
        } onCancel: {
            client.terminate()
            host.terminate()
        }
        return statuses.client == 0 && statuses.host == 0 && transcript.clientOutput == JoinReport.lines(payload)
    }

    private func hostArguments(_ simulation: Simulation) -> [String] {
        let pairs = payload.object.flatMap { key, value in
            let text = value.string ?? String(decoding: value.encoded(), as: UTF8.self)
            return ["--payload", value.string == nil ? "\(key):=\(text)" : "\(key)=\(text)"]
        }
        return ["host", "--app-id", Self.appId, "--once", "--name", "demo"] + pairs + common(simulation, adapter: 0)
    }

    private func clientArguments(_ simulation: Simulation) -> [String] {
        ["join", "--app-id", Self.appId] + common(simulation, adapter: 1)
    }

    private func common(_ simulation: Simulation, adapter: Int) -> [String] {
        ["--bus", simulation.bus, "--adapter", simulation.adapters[adapter].name]
            + (output.quiet ? ["--quiet"] : ["--verbose"])
    }
}
