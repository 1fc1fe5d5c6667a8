// SPDX-License-Identifier: MIT

import Glibc

/// A lock with a condition to wait for.
///
/// A pthread mutex, because ThreadSanitizer reports false races in `Synchronization.Mutex`.
///
/// `@unchecked Sendable`: the only state is a mutex and a condition at stable addresses, which are made for many
/// threads.
final class Monitor: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // A change of the wall clock must not move a deadline.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Does nothing, and returns `nil`, where somebody has the lock.
    func withLockIfFree<Result>(_ body: () -> Result) -> Result? {
        guard pthread_mutex_trylock(mutex) == 0 else { return nil }
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Inside `withLock` only: gives the lock up until somebody signals, or the deadline (`Monitor.now`) has passed.
    func wait(until deadline: Duration?) {
        guard let deadline else {
            pthread_cond_wait(condition, mutex)
            return
        }
        let (seconds, attoseconds) = deadline.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        pthread_cond_timedwait(condition, mutex, &time)
    }

    func signal() { pthread_cond_signal(condition) }

    /// The monotonic clock's reading.
    static var now: Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

/// A value behind a lock.
///
/// `@unchecked Sendable`: the value is touched inside the monitor's lock only.
final class Guarded<Value>: @unchecked Sendable {
    private let monitor = Monitor()
    private var value: Value

    init(_ value: Value) { self.value = value }

    func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        try monitor.withLock { () throws(Failure) in try body(&value) }
    }

    /// Does nothing, and returns `nil`, where somebody has the lock.
    func withLockIfFree<Result>(_ body: (inout Value) -> Result) -> Result? {
        monitor.withLockIfFree { body(&value) }
    }
}
