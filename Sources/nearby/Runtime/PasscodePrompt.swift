// SPDX-License-Identifier: MIT

import Glibc

/// Lines typed at the terminal, for whoever waits for one just now.
final class TypedLines: Sendable {
    private struct State {
        var isStarted = false
        var handler: @Sendable (String) -> Void = { _ in }
        var atEnd: @Sendable () -> Void = {}
        var hasEnded = false
    }

    private let state = Guarded(State())

    /// Lines go here from now on, and to nobody else.
    func route(to handler: @escaping @Sendable (String) -> Void, atEnd: @escaping @Sendable () -> Void = {}) {
        let (isFirst, hasEnded) = state.withLock { state in
            defer { state.isStarted = true }
            state.handler = handler
            state.atEnd = atEnd
            return (!state.isStarted, state.hasEnded)
        }
        if hasEnded { return atEnd() }
        guard isFirst else { return }
        LineReader.start(STDIN_FILENO) { [state] line in
            state.withLock { $0.handler }(line)
        } atEnd: { [state] in
            let atEnd = state.withLock { state in
                state.hasEnded = true
                return state.atEnd
            }
            atEnd()
        }
    }
}

/// Asks for a passcode at the terminal, without showing what is typed.
enum PasscodePrompt {
    static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    /// - Returns: nil where nothing was typed, or the task was cancelled. The terminal shows again what is typed then.
    static func ask(_ question: String, _ typed: TypedLines, on console: Console) async -> String? {
        var before = termios()
        guard tcgetattr(STDIN_FILENO, &before) == 0 else { return nil }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        silent.c_lflag |= tcflag_t(ECHONL | ICANON | ISIG)
        // What was typed before the question is no answer to it.
        guard tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) == 0 else { return nil }
        defer { tcsetattr(STDIN_FILENO, TCSANOW, &before) }
        let (lines, continuation) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(1))
        typed.route { line in
            continuation.yield(line)
            continuation.finish()
        } atEnd: {
            continuation.finish()
        }
        console.prompt(question)
        // A cancelled task ends the loop at once.
        for await line in lines { return line.isEmpty ? nil : line }
        return nil
    }
}
