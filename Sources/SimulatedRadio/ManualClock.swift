// SPDX-License-Identifier: MIT

public import BluetoothLE

/// A clock that stands still until somebody advances it.
///
/// The plain way to use it is `run`: it lets time pass as far as an operation needs it, and no further.
///
/// ```swift
/// let found = try await clock.run {
///     let scan = try await phone.scan(for: ScanFilter(services: [uuid]))
///     for await case .discovered(let discovery) in scan.events { return discovery }
///     throw NothingFound()
/// }
/// ```
///
/// To stop at an instant, start the work in a task of its own, wait until it waits, then advance:
///
/// ```swift
/// let join = Task { try await client.join() }
/// await clock.waitForSleepers(atLeast: 1)     // the client's deadline
/// await clock.advance(by: .seconds(29))       // not yet
/// await clock.advance(by: .seconds(1))        // now it has timed out
/// ```
///
/// What the medium itself does at an instant (advertisements, deliveries, time-outs) happens within the step to that
/// instant, in order, and never later. What your tasks do in consequence runs on Swift's executors; before each step the
/// clock waits for it, that is, until no thread of the process runs or wants to (on Linux; seen from outside, so nothing
/// has to be declared, and a slow machine does no harm). It cannot see two things:
///
/// - Work that sleeps for a reason outside of the process: a socket, another process, real time. Wait for its result
///   before you advance.
/// - Your tasks, in a process with something that never rests. Then a step comes when nothing has called this clock or the
///   medium for `settlingTime` of the processor's time, ten times that before a step of a second or more. On systems
///   other than Linux that is the rule, with a twentieth of it in real time.
public final class ManualClock: MonotonicClock {
    public typealias Duration = Swift.Duration
    public typealias Instant = ContinuousClock.Instant

    typealias TimerID = Timeline<Entry>.ID

    enum Entry: Sendable {
        case timer(@Sendable () -> Void)
        case sleeper(id: UInt64, CheckedContinuation<Bool, Never>)
    }

    struct State {
        var now: Instant
        var timeline = Timeline<Entry>()
        var sleepers: [UInt64: TimerID] = [:]
        var nextSleeper: UInt64 = 0
        var cancelled: Set<UInt64> = []
        /// Who waits for how many sleepers.
        var watchers: [UInt64: (count: Int, CheckedContinuation<Void, Never>)] = [:]
    }

    let state: Locked<State>
    let activity = Activity()
    let settlingTime: Duration
    private let origin: Instant

    /// - Parameter settlingTime: How much of the processor's time may go by without a call before the clock takes a step
    ///   in a process that does not come to rest.
    public init(settlingTime: Duration = .milliseconds(100)) {
        origin = ContinuousClock.now
        state = Locked(State(now: origin))
        self.settlingTime = settlingTime
    }

    public var now: Instant { state.withLock { $0.now } }

    /// The time that has been let pass since the clock was made.
    public var elapsed: Duration { origin.duration(to: now) }

    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Tasks asleep on this clock.
    public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try Task.checkCancellation()
        activity.note()
        let id = state.withLock { state in
            state.nextSleeper += 1
            return state.nextSleeper
        }
        let finished = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                fallAsleep(id, until: deadline, continuation)
            }
        } onCancel: {
            wakeCancelled(id)
        }
        state.withLock { _ = $0.cancelled.remove(id) }
        activity.note()
        if !finished { throw CancellationError() }
    }

    private func fallAsleep(_ id: UInt64, until deadline: Instant, _ continuation: CheckedContinuation<Bool, Never>) {
        let (result, watchers) = state.withLock { state -> (Bool?, [CheckedContinuation<Void, Never>]) in
            if state.cancelled.remove(id) != nil { return (false, []) }
            if deadline <= state.now { return (true, []) }
            state.sleepers[id] = state.timeline.add(.sleeper(id: id, continuation), at: deadline)
            let count = state.sleepers.count
            let satisfied = state.watchers.filter { $0.value.count <= count }
            for key in satisfied.keys { state.watchers[key] = nil }
            return (nil, satisfied.values.map(\.1))
        }
        if let result { continuation.resume(returning: result) }
        for watcher in watchers { watcher.resume() }
    }

    private func wakeCancelled(_ id: UInt64) {
        activity.note()
        let entry = state.withLock { state -> Entry? in
            guard let timer = state.sleepers.removeValue(forKey: id) else {
                // Not asleep yet, or awake already; `sleep` takes the mark back.
                state.cancelled.insert(id)
                return nil
            }
            return state.timeline.remove(timer)
        }
        if case .sleeper(_, let continuation) = entry { continuation.resume(returning: false) }
    }

    // MARK: - Timers of the medium

    /// Calls `body` when the time has come, in the thread that advances the clock.
    func schedule(at deadline: Instant, _ body: @escaping @Sendable () -> Void) -> TimerID {
        state.withLock { $0.timeline.add(.timer(body), at: deadline) }
    }

    func cancel(_ timer: TimerID) {
        state.withLock { _ = $0.timeline.remove(timer) }
    }
}
