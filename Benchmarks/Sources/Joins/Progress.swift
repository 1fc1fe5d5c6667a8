// SPDX-License-Identifier: MIT

/// How far one client has come, and when.
actor Progress {
    enum Stage: Comparable {
        case idle
        case scanning
        case found
    }

    private(set) var stage = Stage.idle
    private var times: [Stage: UInt64] = [:]
    private var waiter: (stage: Stage, continuation: CheckedContinuation<Void, Never>)?

    func reach(_ stage: Stage) {
        guard stage > self.stage else { return }
        self.stage = stage
        times[stage] = Monotonic.now()
        guard let waiter, stage >= waiter.stage else { return }
        self.waiter = nil
        waiter.continuation.resume()
    }

    /// On the monotonic clock, in nanoseconds; now, if the stage has not been reached.
    func time(of stage: Stage) -> UInt64 { times[stage] ?? Monotonic.now() }

    /// For one waiter at a time.
    func wait(for stage: Stage) async {
        guard self.stage < stage else { return }
        await withCheckedContinuation { waiter = (stage, $0) }
    }
}
