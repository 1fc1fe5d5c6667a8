// SPDX-License-Identifier: MIT

import DBus
import Glibc

/// Turns Ctrl-C, SIGTERM and SIGHUP into calls.
///
/// The signals are blocked in every thread and one thread takes them with `sigwait`, so that no code runs inside a
/// signal handler and a process that waits is never woken.
enum Signals {
    private static let handled: [Int32] = [SIGINT, SIGTERM, SIGHUP]

    /// Call it before any other thread exists: threads inherit what is blocked.
    ///
    /// A signal that the parent had ignored (`nohup`, a shell's background job) stays ignored. SIGPIPE is ignored from
    /// now on: a write to a closed pipe answers EPIPE.
    static func watch(_ onSignal: @escaping @Sendable (Int32) -> Void) {
        _ = signal(SIGPIPE, SIG_IGN)
        var set = sigset_t()
        sigemptyset(&set)
        for number in handled where !isIgnored(number) { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        let awaited = set
        DetachedThread.start {
            var set = awaited
            while true {
                var number: Int32 = 0
                if sigwait(&set, &number) == 0 { onSignal(number) }
            }
        }
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        return handler == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}

/// What stopped a command before its end, if anything did.
final class Interruption: Sendable {
    private struct State {
        var code: ExitCode?
        var cancel: (@Sendable () -> Void)?
    }

    private let state = Guarded(State())

    var code: ExitCode? { state.withLock { $0.code } }

    /// What `stop` calls off. Called at once if it was stopped before.
    func onStop(_ cancel: @escaping @Sendable () -> Void) {
        let isStopped = state.withLock { state in
            state.cancel = cancel
            return state.code != nil
        }
        if isStopped { cancel() }
    }

    /// - Returns: whether this was the first time.
    @discardableResult
    func stop(_ code: ExitCode) -> Bool {
        let (isFirst, cancel) = state.withLock { state in
            let isFirst = state.code == nil
            if isFirst { state.code = code }
            return (isFirst, state.cancel)
        }
        if isFirst { cancel?() }
        return isFirst
    }
}
