// SPDX-License-Identifier: MIT

/// A binary heap of timers, the earliest first; equal deadlines in the order they were added. Each timer knows its
/// place, so that a cancelled one leaves at once and cannot wake the thread later.
struct TimerHeap {
    private var timers: [TimerToken] = []

    var first: TimerToken? { timers.first }
    var count: Int { timers.count }

    mutating func insert(_ timer: TimerToken) {
        timer.place = timers.count
        timers.append(timer)
        siftUp(timer.place)
    }

    mutating func remove(_ timer: TimerToken) {
        let place = timer.place
        guard place >= 0, place < timers.count, timers[place] === timer else { return }
        let last = timers.count - 1
        if place != last {
            timers.swapAt(place, last)
            timers[place].place = place
        }
        timers.removeLast()
        timer.place = -1
        if place < timers.count {
            siftDown(place)
            siftUp(place)
        }
    }

    private func isBefore(_ left: TimerToken, _ right: TimerToken) -> Bool {
        left.deadline < right.deadline || (left.deadline == right.deadline && left.order < right.order)
    }

    private mutating func siftUp(_ start: Int) {
        var place = start
        while place > 0 {
            let parent = (place - 1) / 2
            guard isBefore(timers[place], timers[parent]) else { return }
            exchange(place, parent)
            place = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var place = start
        while true {
            let left = 2 * place + 1
            guard left < timers.count else { return }
            let right = left + 1
            let least = right < timers.count && isBefore(timers[right], timers[left]) ? right : left
            guard isBefore(timers[least], timers[place]) else { return }
            exchange(place, least)
            place = least
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        timers.swapAt(left, right)
        timers[left].place = left
        timers[right].place = right
    }
}

/// Something that happens later on an ``EventLoop``, unless it is cancelled.
///
/// `@unchecked Sendable`: the constants are `Sendable`; `place` and `body` are touched on the loop's thread only.
public final class TimerToken: @unchecked Sendable {
    let deadline: UInt64
    let order: UInt64
    var place = -1
    var body: (@Sendable () -> Void)?
    private weak let core: LoopCore?

    init(deadline: UInt64, order: UInt64, core: LoopCore, body: @escaping @Sendable () -> Void) {
        self.deadline = deadline
        self.order = order
        self.core = core
        self.body = body
    }

    /// Cancels the timer. Called on the loop, it is certain not to run; from elsewhere it may be running already.
    public func cancel() {
        guard let core else { return }
        if core.isCurrent {
            core.cancel(self)
        } else {
            core.enqueue { [weak core] in core?.cancel(self) }
        }
    }
}
