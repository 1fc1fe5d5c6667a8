// SPDX-License-Identifier: MIT

import Glibc

/// A program that we started, with its output in our hands.
final class ChildProcess: Sendable {
    private struct State {
        var isRunning = true
        var status: Int32 = 0
        var waiters: [CheckedContinuation<Int32, Never>] = []
    }

    let id: pid_t
    private let state = Guarded(State())

    /// Starts a program with nothing to read, in a process group of its own: a Ctrl-C at the terminal reaches us
    /// alone, and we decide who ends when.
    ///
    /// - Parameter path: Of the program, or its name, which is looked up in `PATH`.
    /// - Parameter line: Called on threads of the child's; `true` for a line of its standard error.
    init(
        _ path: String,
        _ arguments: [String],
        line: @escaping @Sendable (String, _ isError: Bool) -> Void
    ) throws(Failure) {
        var output: [Int32] = [-1, -1]
        var errors: [Int32] = [-1, -1]
        guard pipe(&output) == 0, pipe(&errors) == 0 else { throw Self.failed(path, errno) }
        for descriptor in output + errors { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        let (error, process) = Self.spawn(path, arguments, output: output[1], errors: errors[1])
        close(output[1])
        close(errors[1])
        guard error == 0 else {
            close(output[0])
            close(errors[0])
            throw Self.failed(path, error)
        }
        id = process
        watch(output: output[0], errors: errors[0], line)
    }

    private static func spawn(
        _ path: String,
        _ arguments: [String],
        output: Int32,
        errors: Int32
    ) -> (error: Int32, process: pid_t) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Ours are blocked and SIGPIPE is ignored: a child starts as if a shell had started it.
        var none = sigset_t()
        sigemptyset(&none)
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes,
            Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP)
        )

        var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
        words.append(nil)
        defer { words.forEach { free($0) } }
        var process: pid_t = 0
        let error = posix_spawnp(&process, path, &actions, &attributes, words, environ)
        return (error, process)
    }

    private func watch(
        output: Int32,
        errors: Int32,
        _ line: @escaping @Sendable (String, Bool) -> Void
    ) {
        let open = Guarded(2)
        let atEnd: @Sendable () -> Void = { [self] in
            let isLast = open.withLock { count in
                count -= 1
                return count == 0
            }
            // Only now, so that whoever waits for the end has had all the output.
            if isLast { reap() }
        }
        for (descriptor, isError) in [(output, false), (errors, true)] {
            LineReader.start(descriptor, line: { line($0, isError) }) {
                close(descriptor)
                atEnd()
            }
        }
    }

    private func reap() {
        let code = Self.wait(for: id)
        let waiters = state.withLock { state in
            state.isRunning = false
            state.status = code
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: code) }
    }

    /// Blocks until a child has ended; its exit status as a shell has it.
    static func wait(for id: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(id, &status, 0) < 0, errno == EINTR {}
        // The exit status in the second byte, or the signal in the first: what a shell calls 128 + signal.
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    }

    /// Asks it to end, unless it has.
    func terminate() {
        state.withLock { if $0.isRunning { kill(id, SIGTERM) } }
    }

    /// Suspends until it has ended and its output has been read; its exit status as a shell has it.
    func ended() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status: Int32? = state.withLock { state in
                if state.isRunning {
                    state.waiters.append(continuation)
                    return nil
                }
                return state.status
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    private static func failed(_ path: String, _ error: Int32) -> Failure {
        .internal("cannot start \(path): \(systemMessage(error))")
    }
}
