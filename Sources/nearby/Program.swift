// SPDX-License-Identifier: MIT

import DBus
import Glibc

/// A command with its options read.
protocol Command: Sendable {
    static var spec: CommandSpec { get }

    init(_ values: OptionValues) throws(Failure)

    var output: OutputOptions { get }

    /// Does the work. Cancelled by a signal, it cleans up and returns or throws what it likes: the signal decides how
    /// the process ends.
    func run(_ context: CommandContext) async throws(Failure) -> ExitCode
}

/// A command that uses a radio.
protocol RadioCommand: Command {
    var radio: RadioOptions { get }
}

/// What a command works with.
struct CommandContext: Sendable {
    let console: Console
    let loop: CommandLoop
}

/// From the words of a command line to the exit code.
enum Program {
    static let version = "0.1.0"

    static let commands: [any Command.Type] = [
        HostCommand.self, JoinCommand.self, ScanCommand.self, SimulateCommand.self, DemoCommand.self,
        BridgeCommand.self,
        DeviceScanCommand.self, DeviceInfoCommand.self, DeviceServicesCommand.self, DeviceConsoleCommand.self,
    ]

    static func run(_ words: Result<[String], Failure>) -> ExitCode {
        do throws(Failure) {
            switch try Invocation(try words.get()) {
            case .print(let text): return print(text, to: STDOUT_FILENO)
            case .run(let command): return execute(command)
            }
        } catch {
            let text = "nearby\(error.command.map { " \($0)" } ?? ""): \(error.message)\n"
            let help = "`nearby \(error.command.map { "\($0) " } ?? "")--help` lists what there is."
            let advice = [error.advice, error.exitCode == .usage ? help : nil].compactMap { $0 }
            let lines = advice.isEmpty ? "" : advice.joined(separator: " ") + "\n"
            _ = Console.Streams.write(text + lines, to: STDERR_FILENO)
            return error.exitCode
        }
    }

    private static func print(_ text: String, to descriptor: Int32) -> ExitCode {
        _ = signal(SIGPIPE, SIG_IGN)
        return switch Console.Streams.write(text, to: descriptor) {
        case .written: .done
        case .closed: .outputClosed
        case .failed: outputFailed()
        }
    }

    private static func outputFailed() -> ExitCode {
        _ = Console.Streams.write("nearby: the output cannot be written\n", to: STDERR_FILENO)
        return .outputFailed
    }

    private static func execute(_ command: any Command) -> ExitCode {
        let interruption = Interruption()
        let console = Console(command.output, .process) { code in interruption.stop(code) }
        let loop = CommandLoop()
        Signals.watch { number in
            let code = ExitCode(signal: number)
            let leave: @Sendable () -> Void = {
                console.clearStatusIfFree()
                EditingTerminal.restore()
                _exit(code.rawValue)
            }
            // The second one: whoever sends it does not want to wait for the clean-up.
            guard interruption.code == nil else { return leave() }
            // Whoever sends one only does not want to wait for ever, either: a service may never answer. This is no timer
            // of the loop's: its thread may be the one that waits, for somebody to read the output.
            DetachedThread.start {
                sleep(UInt32(Limits.cleanUp.components.seconds))
                leave()
            }
            interruption.stop(code)
        }
        let result = Guarded<Result<ExitCode, Failure>>(.success(.done))
        let task = Task(executorPreference: loop) {
            let outcome: Result<ExitCode, Failure>
            do throws(Failure) {
                outcome = .success(try await command.run(CommandContext(console: console, loop: loop)))
            } catch {
                outcome = .failure((command as? any RadioCommand)?.radio.namingBridges(error) ?? error)
            }
            result.withLock { $0 = outcome }
            loop.stop()
        }
        interruption.onStop { task.cancel() }
        loop.run()
        return conclude(result.withLock { $0 }, interruption.code, console)
    }

    /// A signal, or a reader of our output that has gone, is what the process ends with; it is no error to report.
    static func conclude(_ result: Result<ExitCode, Failure>, _ stopped: ExitCode?, _ console: Console) -> ExitCode {
        console.clearStatus()
        if let stopped {
            if stopped == .outputFailed { console.error("nearby: the output cannot be written") }
            return stopped
        }
        switch result {
        case .success(let code):
            return code
        case .failure(let failure):
            report(failure, on: console)
            return failure.exitCode
        }
    }

    private static func report(_ failure: Failure, on console: Console) {
        if console.options.json { console.result(JSONLine.text(failure.json)) }
        // A host's words can be part of the message.
        console.error("nearby: " + PlainText.printable(failure.message, limit: Limits.printedMessage))
        if let advice = failure.advice { console.note(PlainText.printable(advice, limit: Limits.printedMessage)) }
        if let detail = failure.detail, !detail.isEmpty {
            console.detail("detail: " + PlainText.printable(detail, limit: Limits.printedMessage))
        }
    }
}
