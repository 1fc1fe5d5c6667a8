// SPDX-License-Identifier: MIT

import Glibc

/// Results on standard output, progress on standard error, and one live line on a terminal.
///
/// Text handed to it is printed as it is: what comes from strangers goes through `PlainText` first.
final class Console: Sendable {
    /// Where a console writes; tests write elsewhere.
    struct Streams: Sendable {
        var output: @Sendable (String) -> WriteResult
        var errors: @Sendable (String) -> WriteResult
        var outputIsTerminal: Bool
        var errorsAreTerminal: Bool
        /// Columns and rows.
        var terminalSize: @Sendable () -> (columns: Int, rows: Int)
    }

    enum WriteResult: Sendable {
        case written
        /// The reader has closed its end.
        case closed
        case failed
    }

    private struct State {
        var live = ""
        var isBroken = false
        /// The block that is redrawn in place, on standard output.
        var block: [String] = []
    }

    let options: OutputOptions
    private let streams: Streams
    private let onBroken: @Sendable (ExitCode) -> Void
    private let state = Guarded(State())

    /// - Parameter onBroken: Called once, when standard output takes no more.
    init(_ options: OutputOptions, _ streams: Streams, onBroken: @escaping @Sendable (ExitCode) -> Void) {
        self.options = options
        self.streams = streams
        self.onBroken = onBroken
    }

    var outputIsTerminal: Bool { streams.outputIsTerminal }

    var errorsAreTerminal: Bool { streams.errorsAreTerminal }

    var isInteractive: Bool { streams.errorsAreTerminal && !options.quiet }

    var terminalSize: (columns: Int, rows: Int) { streams.terminalSize() }

    /// A line of the result, on standard output.
    func result(_ line: String) { results([line]) }

    func results(_ lines: [String]) {
        guard !lines.isEmpty else { return }
        write(lines.map { $0 + "\n" }.joined())
    }

    /// Lines on standard output that replace those of the call before. Only where standard output is a terminal.
    func block(_ lines: [String]) {
        let (columns, rows) = terminalSize
        let shown = lines.prefix(max(1, rows - 2)).map { PlainText.clipped($0, columns: columns) }
        let before = state.withLock { state in
            defer { state.block = shown }
            return state.block
        }
        guard shown != before else { return }
        let start = before.isEmpty ? "" : "\u{1B}[\(before.count)A\r\u{1B}[J"
        write(start + shown.map { $0 + "\n" }.joined())
    }

    /// What is going on just now: one line that the next one replaces. Only on a terminal.
    func status(_ text: @autoclosure () -> String) {
        guard streams.errorsAreTerminal, !options.quiet else { return }
        let line = PlainText.clipped(text(), columns: max(1, terminalSize.columns - 1))
        state.withLock { state in
            guard state.live != line else { return }
            state.live = line
            _ = streams.errors("\r\u{1B}[K" + line)
        }
    }

    /// A line worth knowing, on standard error, unless `--quiet`.
    func note(_ text: String) {
        if !options.quiet { error(text) }
    }

    /// A line on standard error with `--verbose`.
    func detail(_ text: @autoclosure () -> String) {
        if options.verbose { error(text()) }
    }

    /// A line on standard error, whatever the options.
    func error(_ text: String) {
        state.withLock { state in
            let live = state.live
            _ = streams.errors((live.isEmpty ? "" : "\r\u{1B}[K") + text + "\n" + live)
        }
    }

    /// Text without a line's end, on standard error: a question.
    func prompt(_ text: String) {
        clearStatus()
        state.withLock { _ in _ = streams.errors(text) }
    }

    /// Takes the live line away.
    func clearStatus() {
        state.withLock { clear(&$0) }
    }

    /// The same for a process that ends at once: not while another thread writes, which can last until somebody reads.
    func clearStatusIfFree() {
        _ = state.withLockIfFree { clear(&$0) }
    }

    private func clear(_ state: inout State) {
        if !state.live.isEmpty { _ = streams.errors("\r\u{1B}[K") }
        state.live = ""
    }

    private func write(_ text: String) {
        let broken: ExitCode? = state.withLock { state in
            guard !state.isBroken else { return nil }
            // Both streams may be one terminal: the live line makes room and comes back below.
            if !state.live.isEmpty { _ = streams.errors("\r\u{1B}[K") }
            let result = streams.output(text)
            if !state.live.isEmpty { _ = streams.errors(state.live) }
            guard result != .written else { return nil }
            state.isBroken = true
            return result == .closed ? .outputClosed : .outputFailed
        }
        if let broken { onBroken(broken) }
    }
}

extension Console.Streams {
    /// The process's own.
    static var process: Self {
        Self(
            output: { write($0, to: STDOUT_FILENO) },
            errors: { write($0, to: STDERR_FILENO) },
            outputIsTerminal: isTerminal(STDOUT_FILENO),
            errorsAreTerminal: isTerminal(STDERR_FILENO),
            terminalSize: {
                var size = winsize()
                let isKnown = ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
                return isKnown ? (Int(size.ws_col), Int(size.ws_row)) : (80, 24)
            }
        )
    }

    private static func isTerminal(_ descriptor: Int32) -> Bool {
        guard isatty(descriptor) == 1 else { return false }
        return getenv("TERM").map { String(cString: $0) != "dumb" } ?? false
    }

    static func write(_ text: String, to descriptor: Int32) -> Console.WriteResult {
        var text = text
        return text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count >= 0 {
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno == EAGAIN {
                    // Somebody else has made the terminal non-blocking: wait for room.
                    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&ready, 1, -1)
                } else if errno != EINTR {
                    return errno == EPIPE ? .closed : .failed
                }
            }
            return .written
        }
    }
}
