// SPDX-License-Identifier: MIT

import CEdit
import DBus
import Glibc

/// A line that is edited at the bottom of the terminal, with a history, while other lines appear above it.
///
/// libedit is one per process and is not made for threads: one thread does everything, typing and printing. Its
/// callback interface has no context, so that there is one terminal at a time, in `current`.
final class EditingTerminal: Sendable {
    private struct State {
        var output: [String] = []
        var isStopped = false
        /// Who waits for the thread's end.
        var waiters: [CheckedContinuation<Void, Never>] = []
        var hasEnded = false
    }

    private static let current = Guarded<EditingTerminal?>(nil)
    private static let modes = Guarded<termios?>(nil)

    private let prompt: String
    private let line: @Sendable (String) -> Void
    private let atEnd: @Sendable () -> Void
    private let wake: (read: Int32, write: Int32)
    private let state = Guarded(State())
    /// Set by libedit's callback, on the terminal's thread.
    private let typed = Guarded<(lines: [String], isAtEnd: Bool)>(([], false))

    /// - Parameters:
    ///   - line: Called with each line, on a thread of the terminal's.
    ///   - atEnd: Called once, when the typing is over (Ctrl-D).
    /// - Returns: `nil` where standard input or output is no terminal, there is one of these already, or libedit is not
    ///   installed.
    static func start(
        prompt: String,
        line: @escaping @Sendable (String) -> Void,
        atEnd: @escaping @Sendable () -> Void
    ) -> EditingTerminal? {
        var before = termios()
        guard isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &before) == 0, nearby_edit_load() else {
            return nil
        }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let terminal = EditingTerminal(prompt: prompt, wake: (ends[0], ends[1]), line: line, atEnd: atEnd)
        let isFirst = current.withLock { current in
            guard current == nil else { return false }
            current = terminal
            return true
        }
        modes.withLock { $0 = before }
        guard isFirst, DetachedThread.start({ terminal.run() }) else { return nil }
        return terminal
    }

    private init(
        prompt: String,
        wake: (Int32, Int32),
        line: @escaping @Sendable (String) -> Void,
        atEnd: @escaping @Sendable () -> Void
    ) {
        self.prompt = prompt
        self.wake = wake
        self.line = line
        self.atEnd = atEnd
    }

    deinit {
        close(wake.read)
        close(wake.write)
    }

    /// Prints a line above the one that is being edited.
    func print(_ text: String) {
        let isOver = state.withLock { state in
            if !state.hasEnded { state.output.append(text) }
            return state.hasEnded
        }
        if isOver { _ = Console.Streams.write(text + "\n", to: STDOUT_FILENO) } else { poke() }
    }

    /// Ends the editing; returns once the terminal is as it was before.
    func stop() async {
        state.withLock { $0.isStopped = true }
        poke()
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.hasEnded { state.waiters.append(continuation) }
                return state.hasEnded
            }
            if hasEnded { continuation.resume() }
        }
    }

    /// For a process that ends at once: puts the terminal back. May be called from any thread.
    static func restore() {
        guard var before = modes.withLock({ $0 }) else { return }
        tcsetattr(STDIN_FILENO, TCSANOW, &before)
    }

    private func poke() {
        var byte: UInt8 = 0
        _ = write(wake.write, &byte, 1)
    }

    // MARK: The terminal's thread

    private func run() {
        begin()
        var isTyping = true
        while true {
            var sources = [
                pollfd(fd: isTyping ? STDIN_FILENO : -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wake.read, events: Int16(POLLIN), revents: 0),
            ]
            if poll(&sources, 2, -1) < 0, errno != EINTR { break }
            if sources[1].revents != 0 {
                var bytes = [UInt8](repeating: 0, count: 256)
                _ = read(wake.read, &bytes, bytes.count)
            }
            let (output, isStopped) = state.withLock { state in
                defer { state.output = [] }
                return (state.output, state.isStopped)
            }
            show(output, isTyping: isTyping)
            if isStopped { break }
            if isTyping, sources[0].revents != 0 {
                // A terminal that has gone is always ready to be read, and gives nothing.
                let isGone = sources[0].revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0
                isTyping = isGone ? false : readKey()
                if !isTyping { atEnd() }
            }
        }
        nearby_edit_end()
        Self.restore()
        _ = Console.Streams.write("\r\u{1B}[K", to: STDOUT_FILENO)
        Self.current.withLock { $0 = nil }
        let waiters = state.withLock { state in
            state.hasEnded = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Anew for each line: libedit 3.1-20221030 leaves its mode when a line is finished.
    private func begin() {
        nearby_edit_begin(prompt) { line in
            let terminal = EditingTerminal.current.withLock { $0 }
            guard let line else {
                terminal?.typed.withLock { $0.isAtEnd = true }
                return
            }
            let text = String(cString: line)
            if line.pointee != 0 { nearby_edit_remember(line) }
            free(line)
            terminal?.typed.withLock { $0.lines.append(text) }
        }
    }

    /// - Returns: whether more may be typed.
    private func readKey() -> Bool {
        nearby_edit_read_char()
        let (lines, isAtEnd) = typed.withLock { typed in
            defer { typed.lines = [] }
            return typed
        }
        if isAtEnd { return false }
        if !lines.isEmpty { begin() }
        lines.forEach(line)
        return true
    }

    private func show(_ lines: [String], isTyping: Bool) {
        guard !lines.isEmpty else { return }
        _ = Console.Streams.write("\r\u{1B}[K" + lines.map { $0 + "\n" }.joined(), to: STDOUT_FILENO)
        if isTyping { nearby_edit_show_again() }
    }
}
