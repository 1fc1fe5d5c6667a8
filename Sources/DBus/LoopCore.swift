// SPDX-License-Identifier: MIT

import CDBus
import Glibc

/// The thread behind an ``EventLoop``.
///
/// `@unchecked Sendable`: `queue`, `stopping`, `signalled`, `returns`, `timerOrder`, `descriptors` and `generation` are guarded by
/// `lock`; `thread` and `name` are written once before anything else can run; all the rest is touched by the loop's thread only.
final class LoopCore: @unchecked Sendable {
    private enum Work {
        case job(UnownedJob)
        case body(@Sendable () -> Void)
    }

    /// A descriptor the loop watches.
    private final class Descriptor {
        var events: UInt32
        let generation: UInt32
        let handler: (UInt32) -> Void

        init(events: UInt32, generation: UInt32, handler: @escaping (UInt32) -> Void) {
            self.events = events
            self.generation = generation
            self.handler = handler
        }
    }

    private let lock = Lock()
    private var queue: [Work] = []
    private var stopping = false
    private var signalled = false
    private var returns: UInt64 = 0

    private var thread = pthread_t()
    private var name = ""
    private let epoll: Int32
    private let wakeFD: Int32

    private weak var owner: EventLoop?
    private var batch: [Work] = []
    private var timers = TimerHeap()
    private var timerOrder: UInt64 = 0
    private var descriptors: [Int32: Descriptor] = [:]
    private var generation: UInt32 = 0

    init() {
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        wakeFD = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = LoopCore.tag(wakeFD, 0)
        // A process that is out of descriptors when it makes a loop cannot run one; there is nobody to tell later.
        precondition(
            epoll >= 0 && wakeFD >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, wakeFD, &event) == 0,
            "an event loop needs two file descriptors")
    }

    deinit {
        close(epoll)
        close(wakeFD)
    }

    var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }

    var wakeUps: UInt64 { lock.withLock { returns } }

    // MARK: From any thread

    func start(owner: EventLoop, name: String) {
        self.owner = owner
        self.name = String(decoding: name.utf8.prefix(15), as: UTF8.self)
        // The new thread waits for the lock, so it sees `thread` set.
        lock.lock()
        let status = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<LoopCore>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        precondition(status == 0, "an event loop needs a thread")
        pthread_detach(thread)
        lock.unlock()
    }

    func stop() {
        lock.withLock {
            stopping = true
            signal()
        }
    }

    func enqueue(_ job: UnownedJob) {
        add(.job(job))
    }

    func enqueue(_ body: @escaping @Sendable () -> Void) {
        add(.body(body))
    }

    private func add(_ work: Work) {
        let here = isCurrent
        lock.lock()
        queue.append(work)
        if !here { signal() }
        lock.unlock()
    }

    /// Wakes the thread up. One write per turn is enough. With the lock held.
    private func signal() {
        guard !signalled else { return }
        signalled = true
        var one: UInt64 = 1
        write(wakeFD, &one, 8)
    }

    func schedule(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> TimerToken {
        let deadline = LoopCore.now() &+ LoopCore.nanoseconds(delay)
        if isCurrent { return insert(deadline: deadline, body) }
        let order = lock.withLock {
            timerOrder += 1
            return timerOrder
        }
        let timer = TimerToken(deadline: deadline, order: order, core: self, body: body)
        enqueue { [self] in
            if timer.body != nil { timers.insert(timer) }
        }
        return timer
    }

    // MARK: On the loop

    private func insert(deadline: UInt64, _ body: @escaping @Sendable () -> Void) -> TimerToken {
        let order = lock.withLock {
            timerOrder += 1
            return timerOrder
        }
        let timer = TimerToken(deadline: deadline, order: order, core: self, body: body)
        timers.insert(timer)
        return timer
    }

    func cancel(_ timer: TimerToken) {
        timers.remove(timer)
        timer.body = nil
    }

    // MARK: Descriptors, from any thread: a send may find that its socket is full, or gone

    /// Starts to watch a descriptor. The handler is called on the loop with the events that happened.
    ///
    /// - Returns: false if the system refuses.
    func watch(_ descriptor: Int32, events: UInt32, handler: @escaping (UInt32) -> Void) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        generation &+= 1
        let entry = Descriptor(events: events, generation: generation, handler: handler)
        var event = epoll_event()
        event.events = events
        event.data.u64 = LoopCore.tag(descriptor, entry.generation)
        guard epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else { return false }
        descriptors[descriptor] = entry
        return true
    }

    func change(_ descriptor: Int32, events: UInt32) {
        lock.lock()
        defer { lock.unlock() }
        guard let entry = descriptors[descriptor], entry.events != events else { return }
        entry.events = events
        var event = epoll_event()
        event.events = events
        event.data.u64 = LoopCore.tag(descriptor, entry.generation)
        epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event)
    }

    func unwatch(_ descriptor: Int32) {
        // What the handler holds is let go of outside the lock.
        let entry = lock.withLock {
            let entry = descriptors.removeValue(forKey: descriptor)
            if entry != nil { epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil) }
            return entry
        }
        withExtendedLifetime(entry) {}
    }

    // MARK: The thread

    private func run() {
        // Until `start` has stored the thread's name in `thread`.
        cdbus_name_this_thread(lock.withLock { name })
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: 32)
        defer { events.deallocate() }
        while runJobs() {
            runTimers()
            let count = epoll_wait(epoll, events, 32, timeout())
            lock.withLock { returns += 1 }
            guard count > 0 else { continue }
            for index in 0..<Int(count) { dispatch(events[index]) }
        }
    }

    private func dispatch(_ event: epoll_event) {
        let descriptor = Int32(truncatingIfNeeded: event.data.u64 & 0xffff_ffff)
        let generation = UInt32(truncatingIfNeeded: event.data.u64 >> 32)
        if descriptor == wakeFD {
            lock.withLock {
                var value: UInt64 = 0
                read(wakeFD, &value, 8)
                signalled = false
            }
            return
        }
        // An earlier event of the same turn may have closed this one, and even opened another of the same number.
        let entry = lock.withLock { descriptors[descriptor] }
        guard let entry, entry.generation == generation else { return }
        entry.handler(event.events)
    }

    /// - Returns: false when the loop is to end.
    private func runJobs() -> Bool {
        for _ in 0..<Limits.jobRounds {
            lock.lock()
            swap(&queue, &batch)
            let end = stopping && batch.isEmpty
            lock.unlock()
            guard !end else { return false }
            guard !batch.isEmpty else { return true }
            let owner = self.owner
            let executor = owner.map { ($0.asUnownedSerialExecutor(), $0.asUnownedTaskExecutor()) }
            for work in batch {
                switch work {
                case .job(let job):
                    // A job belongs to an actor or a task, and that keeps the loop alive.
                    if let executor { job.runSynchronously(isolatedTo: executor.0, taskExecutor: executor.1) }
                case .body(let body):
                    body()
                }
            }
            batch.removeAll(keepingCapacity: batch.count <= 1024)
        }
        return true
    }

    private func runTimers() {
        guard timers.first != nil else { return }
        let now = LoopCore.now()
        while let timer = timers.first, timer.deadline <= now {
            timers.remove(timer)
            let body = timer.body
            timer.body = nil
            body?()
        }
    }

    private func timeout() -> Int32 {
        guard lock.withLock({ queue.isEmpty }) else { return 0 }
        guard let timer = timers.first else { return -1 }
        let now = LoopCore.now()
        guard timer.deadline > now else { return 0 }
        return Int32(clamping: (timer.deadline - now + 999_999) / 1_000_000)
    }

    // MARK: Arithmetic

    private static func tag(_ descriptor: Int32, _ generation: UInt32) -> UInt64 {
        UInt64(generation) << 32 | UInt64(UInt32(bitPattern: descriptor))
    }

    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    /// Never negative, at most a hundred years.
    static func nanoseconds(_ duration: Duration) -> UInt64 {
        guard duration > .zero else { return 0 }
        let (seconds, attoseconds) = duration.components
        guard seconds < 3_155_760_000 else { return 3_155_760_000_000_000_000 }
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
}
