// SPDX-License-Identifier: MIT

import DBus
import Glibc
import NearbyDiscoveryKit
import Testing

@testable import nearby

/// The program at a terminal of its own, which it controls and a test types at.
final class TerminalProgram: Sendable {
    private struct State {
        var screen = TerminalScreen()
        var waiters: [(condition: @Sendable (TerminalScreen) -> Bool, resume: CheckedContinuation<Bool, Never>)] = []
        var status: Int32?
        var endWaiters: [CheckedContinuation<Int32, Never>] = []
    }

    private let id: pid_t
    private let terminal: Int32
    /// Held open, so that the terminal outlives the program, and can be looked at.
    private let held: Int32
    private let before: [UInt32]
    private let state: Guarded<State>

    init(_ arguments: [String]) throws {
        terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        // Swift imports neither unlockpt nor ptsname: TIOCSPTLCK and TIOCGPTN are what they are made of.
        var (isLocked, number): (Int32, UInt32) = (0, 0)
        let isOpen = terminal >= 0 && ioctl(terminal, 0x4004_5431, &isLocked) == 0
        try #require(isOpen && ioctl(terminal, 0x8004_5430, &number) == 0)
        let name = "/dev/pts/\(number)"
        held = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
        var size = winsize(ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
        let isSized = held >= 0 && ioctl(held, UInt(TIOCSWINSZ), &size) == 0
        try #require(isSized)
        before = Self.modes(of: held)
        id = try Self.spawn(RunningProgram.path, arguments, at: name)
        state = Guarded(State())
        watch()
    }

    deinit {
        close(terminal)
        close(held)
    }

    /// Whether the terminal's modes are what they were before the program.
    var isAsBefore: Bool { Self.modes(of: held) == before }

    var rows: [String] { state.withLock { $0.screen.rows } }

    func type(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(write(terminal, bytes, bytes.count) == bytes.count)
    }

    /// Waits until the screen looks so; false if the program ends before, or writes nothing for 20 s.
    func shows(_ condition: @escaping @Sendable (TerminalScreen) -> Bool) async -> Bool {
        await withCheckedContinuation { continuation in
            let answer: Bool? = state.withLock { state in
                if condition(state.screen) { return true }
                if state.status != nil { return false }
                state.waiters.append((condition, continuation))
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    /// Waits for this row with the cursor in it, so many characters from the left; by default behind the text.
    func edits(_ row: String, at column: Int? = nil) async -> Bool {
        await shows { $0.cursor.row == (row == "> " ? ">" : row) && $0.cursor.column == column ?? row.count }
    }

    /// For a test that is over: nothing, if it has ended already.
    func kill() {
        if state.withLock({ $0.status == nil }) { _ = Glibc.kill(id, SIGKILL) }
    }

    /// Its exit status as a shell has it.
    func ended() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status: Int32? = state.withLock { state in
                if state.status == nil { state.endWaiters.append(continuation) }
                return state.status
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    // MARK: - Beneath

    private static func modes(of terminal: Int32) -> [UInt32] {
        var modes = termios()
        tcgetattr(terminal, &modes)
        return [modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag]
    }

    private static func spawn(_ path: String, _ arguments: [String], at name: String) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // The first terminal that the leader of a session opens controls it: Ctrl-C is a signal there.
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, name, O_RDWR, 0)
        posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var defaults = sigset_t()
        sigemptyset(&defaults)
        for signal in [SIGPIPE, SIGINT, SIGHUP, SIGTERM] { sigaddset(&defaults, signal) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        // POSIX_SPAWN_SETSID, which Swift does not import.
        posix_spawnattr_setflags(&attributes, Int16(0x80 | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
        var variables: [UnsafeMutablePointer<CChar>?] = [strdup("TERM=xterm"), strdup("LC_ALL=C.UTF-8")]
        // A program under a sanitizer heeds what scripts/test.sh says to the sanitizer.
        for name in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
            if let value = getenv(name) { variables.append(strdup("\(name)=\(String(cString: value))")) }
        }
        variables.append(nil)
        defer { (words + variables).forEach { free($0) } }
        var process: pid_t = 0
        let result = posix_spawn(&process, path, &actions, &attributes, &words, &variables)
        try #require(result == 0)
        return process
    }

    /// Reads until the program has ended, and what it has written until then. The threads keep the terminal open.
    private func watch() {
        let status = Guarded<Int32?>(nil)
        let isReaped = DetachedThread.start { [id] in
            let code = ChildProcess.wait(for: id)
            status.withLock { $0 = code }
        }
        let isRead = DetachedThread.start { [self] in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            var last = Monitor.now
            while true {
                let code = status.withLock { $0 }
                var source = pollfd(fd: terminal, events: Int16(POLLIN), revents: 0)
                guard poll(&source, 1, code == nil ? 50 : 0) > 0 else {
                    if let code { return conclude(code) }
                    if Monitor.now - last > .seconds(20) { giveUp() }
                    continue
                }
                last = Monitor.now
                let count = read(terminal, &buffer, buffer.count)
                if count > 0 { take(buffer[..<count]) }
            }
        }
        #expect(isReaped && isRead)
    }

    private func take(_ bytes: ArraySlice<UInt8>) {
        let found = state.withLock { state in
            state.screen.take(bytes)
            let screen = state.screen
            defer { state.waiters.removeAll { $0.condition(screen) } }
            return state.waiters.filter { $0.condition(screen) }
        }
        for waiter in found { waiter.resume.resume(returning: true) }
    }

    private func giveUp() {
        let waiters = state.withLock { state in
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume.resume(returning: false) }
    }

    private func conclude(_ code: Int32) {
        let (waiters, endWaiters) = state.withLock { state in
            state.status = code
            defer { (state.waiters, state.endWaiters) = ([], []) }
            return (state.waiters, state.endWaiters)
        }
        for waiter in waiters { waiter.resume.resume(returning: false) }
        for waiter in endWaiters { waiter.resume(returning: code) }
    }
}
