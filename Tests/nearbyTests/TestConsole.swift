// SPDX-License-Identifier: MIT

@testable import nearby

/// A console that keeps what it prints.
final class TestConsole: Sendable {
    let output = Guarded("")
    let errors = Guarded("")
    let broken = Guarded<[ExitCode]>([])
    let answer = Guarded(Console.WriteResult.written)
    let console: Console

    init(_ options: OutputOptions = OutputOptions(), terminal: Bool = false, columns: Int = 80, rows: Int = 24) {
        let (output, errors, broken, answer) = (output, errors, broken, answer)
        console = Console(
            options,
            Console.Streams(
                output: { text in
                    output.withLock { $0 += text }
                    return answer.withLock { $0 }
                },
                errors: { text in
                    errors.withLock { $0 += text }
                    return .written
                },
                outputIsTerminal: terminal,
                errorsAreTerminal: terminal,
                terminalSize: { (columns, rows) }
            )
        ) { code in
            broken.withLock { $0.append(code) }
        }
    }

    var printed: String { output.withLock { $0 } }
    var told: String { errors.withLock { $0 } }
}
