// SPDX-License-Identifier: MIT

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Tells manual clocks when the process has come to rest.
///
/// Swift does not say whether any task can run. Linux says whether any thread does: two looks at `/proc/self/task` in
/// which every thread sleeps, with the same count of context switches, have a moment between them at which nothing ran
/// and nothing was about to. That holds however slow the machine is, and for all clocks of the process at once. Where
/// there is no such file, or something else in the process never rests, a clock has to do with a period in which
/// nobody called it: of the processor's time in the latter case, for a process that gets none makes no progress, and
/// some turns of the executor's queue, for it may be a long one.
///
/// One thread does the looking; it sleeps while nobody waits.
///
/// `@unchecked Sendable` holds because `waiters` and `isStarted` are touched only with `mutex` locked.
final class Quiescence: @unchecked Sendable {
    static let shared = Quiescence()

    private struct Waiter {
        let activity: Activity
        let quiet: Duration
        var count: UInt64
        /// On the meter, when `count` was last seen to change.
        var since: Duration
        let continuation: CheckedContinuation<Void, Never>
        let id: UInt64
        var probe = Probe.none
    }

    private enum Probe {
        case none
        case underWay
        case done
    }

    /// How often the executor's queue has to come round while nobody calls the clock.
    private static let turns = 200

    /// What the period without calls is measured with.
    private static var meter: Duration {
        guard ThreadStates.areToldBySystem else {
            return started.duration(to: .now) * 20
        }
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    private static let started = ContinuousClock.now

    /// Between two looks, in microseconds.
    private static let pause: UInt32 = 40

    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var waiters: [Waiter] = []
    private var isStarted = false
    private var lastID: UInt64 = 0

    private init() {
        // Never freed: there is one, for the life of the process.
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        pthread_cond_init(condition, nil)
    }

    /// Returns when the process rests, or when `activity` has not counted for `quiet`.
    func wait(_ activity: Activity, quiet: Duration) async {
        await withCheckedContinuation { continuation in
            pthread_mutex_lock(mutex)
            lastID += 1
            waiters.append(
                Waiter(
                    activity: activity, quiet: quiet, count: activity.count, since: Self.meter,
                    continuation: continuation, id: lastID)
            )
            if !isStarted { isStarted = start() }
            pthread_cond_signal(condition)
            pthread_mutex_unlock(mutex)
        }
    }

    private func start() -> Bool {
        #if canImport(Darwin)
        var thread: pthread_t?
        let result = pthread_create(
            &thread, nil,
            { _ in
                Quiescence.shared.watch()
                return nil
            }, nil)
        if let thread, result == 0 { pthread_detach(thread) }
        #else
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { _ in
                Quiescence.shared.watch()
                return nil
            }, nil)
        if result == 0 { pthread_detach(thread) }
        #endif
        return result == 0
    }

    private func watch() {
        var last: ThreadStates?
        while true {
            pthread_mutex_lock(mutex)
            while waiters.isEmpty {
                last = nil
                pthread_cond_wait(condition, mutex)
            }
            let number = waiters.count
            pthread_mutex_unlock(mutex)
            // Who comes while we look has not been seen at rest: the first `number` have.
            let states = ThreadStates.current()
            let isAtRest = states != nil && states == last
            last = states
            let released = release(first: number, isAtRest: isAtRest)
            if released.isEmpty {
                usleep(Self.pause)
            } else {
                last = nil
                for waiter in released { waiter.resume() }
            }
        }
    }

    private func probe(_ id: UInt64) {
        Task.detached {
            for _ in 0..<Self.turns { await Task.yield() }
            self.finishProbe(id)
        }
    }

    private func finishProbe(_ id: UInt64) {
        pthread_mutex_lock(mutex)
        if let index = waiters.firstIndex(where: { $0.id == id }) { waiters[index].probe = .done }
        pthread_mutex_unlock(mutex)
    }

    private func release(first number: Int, isAtRest: Bool) -> [CheckedContinuation<Void, Never>] {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        var released: [CheckedContinuation<Void, Never>] = []
        var kept: [Waiter] = []
        let now = Self.meter
        for (index, waiter) in waiters.enumerated() {
            var waiter = waiter
            let count = waiter.activity.count
            if count != waiter.count {
                // A probe under way no longer counts, and cannot be told from the next: the waiter gets a new name.
                lastID += 1
                waiter = Waiter(
                    activity: waiter.activity,
                    quiet: waiter.quiet,
                    count: count,
                    since: now,
                    continuation: waiter.continuation,
                    id: lastID
                )
            }
            if waiter.probe == .none, now - waiter.since >= waiter.quiet {
                waiter.probe = .underWay
                probe(waiter.id)
            }
            if isAtRest && index < number || waiter.probe == .done {
                released.append(waiter.continuation)
            } else {
                kept.append(waiter)
            }
        }
        waiters = kept
        return released
    }
}

/// The other threads of this process, all asleep, with how often each has been switched.
private struct ThreadStates: Equatable {
    private var switches: [Int32: UInt64] = [:]

    /// `nil` if one of them runs or wants to, or if there is no telling.
    static func current() -> ThreadStates? {
        #if os(Linux)
        guard let directory = opendir("/proc/self/task") else { return nil }
        defer { closedir(directory) }
        guard let own else { return nil }
        var result = ThreadStates()
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard let thread = Int32(name), thread != own else { continue }
            guard let status = switches(ofStatus: "/proc/self/task/\(thread)/status"), status.isAsleep else {
                return nil
            }
            result.switches[thread] = status.count
        }
        return result
        #else
        return nil
        #endif
    }

    #if os(Linux)
    static let areToldBySystem = switches(ofStatus: "/proc/thread-self/status") != nil

    /// The thread that looks, which is the only one that asks: glibc's module has no `gettid`.
    private static let own: Int32? = {
        var buffer = [CChar](repeating: 0, count: 64)
        let count = readlink("/proc/thread-self", &buffer, buffer.count - 1)
        guard count > 0 else { return nil }
        let digits = buffer[..<count].split(separator: CChar(bitPattern: UInt8(ascii: "/"))).last
        return digits.flatMap { Int32(String(decoding: $0.map(UInt8.init(bitPattern:)), as: UTF8.self)) }
    }()

    /// Whether a thread sleeps, and how often it has been switched.
    private static func switches(ofStatus path: String) -> (isAsleep: Bool, count: UInt64)? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        // C's functions: this is read some thousand times a second, also in builds without optimisation.
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4_096) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = read(file, start, buffer.count - 1)
            guard count > 0 else { return nil }
            buffer[count] = 0
            guard let state = strstr(start, "\nState:\t"),
                let voluntary = number("\nvoluntary_ctxt_switches:\t", start),
                let involuntary = number("\nnonvoluntary_ctxt_switches:\t", start)
            else { return nil }
            return (state[8] == CChar(bitPattern: UInt8(ascii: "S")), voluntary &+ involuntary)
        }
    }

    private static func number(_ label: String, _ text: UnsafePointer<CChar>) -> UInt64? {
        guard let line = strstr(text, label) else { return nil }
        return UInt64(strtoull(line + label.utf8.count, nil, 10))
    }
    #else
    static let areToldBySystem = false
    #endif
}
