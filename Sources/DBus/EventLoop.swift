// SPDX-License-Identifier: MIT

import Glibc

/// One thread that waits with epoll and runs what is due: jobs of the actors that live on it, timers, descriptors.
///
/// It is the executor of ``DBusConnection``. An actor that names a loop as its `unownedExecutor` shares the thread with
/// its connections: calls between them change no thread, and inside a handler `assumeIsolated` holds. Work on the loop
/// must not block. An idle loop does not wake up, but once, when the time limit of the last calls from other threads would have
/// been over.
///
/// It is a task executor too: `Task(executorPreference: loop)` keeps code that belongs to no actor on the thread as well,
/// which spares it Swift's global executor.
///
/// `@unchecked Sendable`: the only state is the core, which guards its own.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
    /// The loop that D-Bus work uses unless told otherwise; its thread starts at the first use.
    public static let shared = EventLoop(name: "dbus")

    /// The name of the thread (at most 15 bytes of it show in tools).
    public let name: String
    let core: LoopCore

    /// Starts a thread. It ends after this object and every actor on it are gone.
    public init(name: String) {
        self.name = name
        core = LoopCore()
        core.start(owner: self, name: name)
    }

    deinit {
        core.stop()
    }

    /// Runs a closure on the loop, after everything that was enqueued before.
    public func execute(_ body: @escaping @Sendable () -> Void) {
        core.enqueue(body)
    }

    /// Runs a closure on the loop after a time, rounded up to a millisecond.
    @discardableResult
    public func schedule(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> TimerToken {
        core.schedule(after: delay, body)
    }

    /// Whether the calling thread is the loop's.
    public var isCurrent: Bool { core.isCurrent }

    /// How many times the thread came back from waiting; a measure of idleness.
    package var wakeUps: UInt64 { core.wakeUps }

    public func enqueue(_ job: consuming ExecutorJob) {
        core.enqueue(UnownedJob(job))
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    public func asUnownedTaskExecutor() -> UnownedTaskExecutor {
        UnownedTaskExecutor(ordinary: self)
    }

    public func checkIsolated() {
        precondition(core.isCurrent, "not on the thread of the event loop \(name)")
    }

    public func isIsolatingCurrentContext() -> Bool? {
        core.isCurrent
    }
}
