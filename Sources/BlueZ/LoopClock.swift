// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// The continuous clock, whose sleepers the radio's own loop wakes: a sleep costs no thread beside it. (The standard
/// library's sleeps start libdispatch's threads, which then wake up once a second for as long as the process lives.)
struct LoopClock: MonotonicClock {
    let loop: EventLoop

    var now: ContinuousClock.Instant { ContinuousClock.now }
    var minimumResolution: Duration { .milliseconds(1) }

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
        while true {
            try Task.checkCancellation()
            let rest = now.duration(to: deadline)
            guard rest > .zero else { return }
            let sleep = Sleep()
            await withTaskCancellationHandler {
                await withCheckedContinuation { sleep.begin($0, on: loop, for: rest) }
            } onCancel: {
                sleep.end()
            }
        }
    }
}

/// One sleep, until its time has come or it is called off.
///
/// `@unchecked Sendable`: everything that varies is guarded by `lock`.
private final class Sleep: @unchecked Sendable {
    private let lock = Lock()
    private var sleeper: CheckedContinuation<Void, Never>?
    private var timer: TimerToken?
    private var isOver = false

    func begin(_ sleeper: CheckedContinuation<Void, Never>, on loop: EventLoop, for time: Duration) {
        let isOver = lock.withLock {
            if !self.isOver { self.sleeper = sleeper }
            return self.isOver
        }
        guard !isOver else { return sleeper.resume() }
        let timer = loop.schedule(after: time) { [self] in end() }
        let isLate = lock.withLock {
            self.timer = timer
            return self.isOver
        }
        if isLate { timer.cancel() }
    }

    func end() {
        let (sleeper, timer) = lock.withLock {
            isOver = true
            defer { (self.sleeper, self.timer) = (nil, nil) }
            return (self.sleeper, self.timer)
        }
        timer?.cancel()
        sleeper?.resume()
    }
}
