// SPDX-License-Identifier: MIT

/// The executor of a command's task: jobs and timers on the main thread, which sleeps while there are none.
///
/// The global executor would do, but libdispatch's threads wake up about once a second; a host that waits for days in
/// an otherwise idle machine should not.
///
/// `@unchecked Sendable`: every stored variable is touched inside the monitor's lock only.
final class CommandLoop: TaskExecutor, @unchecked Sendable {
    private let monitor = Monitor()
    private var jobs: [UnownedJob] = []
    private var timers: [Timer] = []
    private var nextTimer = 0
    private var isStopped = false

    private struct Timer {
        var id: Int
        var deadline: Duration
        var body: @Sendable () -> Void
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        monitor.withLock { jobs.append(job) }
        monitor.signal()
    }

    /// Runs a body on the loop's thread after a while. The result cancels it.
    @discardableResult
    func schedule(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let deadline = Monitor.now + delay
        let id = monitor.withLock {
            nextTimer += 1
            timers.append(Timer(id: nextTimer, deadline: deadline, body: body))
            return nextTimer
        }
        monitor.signal()
        return { [self] in monitor.withLock { timers.removeAll { $0.id == id } } }
    }

    /// Suspends for a while; less if the task is cancelled.
    func sleep(for delay: Duration) async {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let cancel = schedule(after: delay) { continuation.finish() }
        for await _ in stream {}
        cancel()
    }

    /// Makes `run()` return once the jobs that are due have run.
    func stop() {
        monitor.withLock { isStopped = true }
        monitor.signal()
    }

    /// Runs jobs on the calling thread until `stop()`.
    func run() {
        while let work = nextWork() {
            switch work {
            case .job(let job): job.runSynchronously(on: asUnownedTaskExecutor())
            case .timer(let body): body()
            }
        }
    }

    private enum Work {
        case job(UnownedJob)
        case timer(@Sendable () -> Void)
    }

    private func nextWork() -> Work? {
        monitor.withLock {
            while true {
                if !jobs.isEmpty { return .job(jobs.removeFirst()) }
                if isStopped { return nil }
                let next = timers.indices.min { timers[$0].deadline < timers[$1].deadline }
                if let next, timers[next].deadline <= Monitor.now { return .timer(timers.remove(at: next).body) }
                monitor.wait(until: next.map { timers[$0].deadline })
            }
        }
    }
}
