// SPDX-License-Identifier: MIT

/// How far one client has come.
actor Progress {
    enum Stage: Comparable {
        case idle
        case scanning
        case connecting
        case ended
    }

    private(set) var stage = Stage.idle
    private var waiter: (stage: Stage, continuation: CheckedContinuation<Void, Never>)?

    func reach(_ stage: Stage) {
        self.stage = max(self.stage, stage)
        guard let waiter, self.stage >= waiter.stage else { return }
        self.waiter = nil
        waiter.continuation.resume()
    }

    /// For one waiter at a time.
    func wait(for stage: Stage) async {
        guard self.stage < stage else { return }
        await withCheckedContinuation { waiter = (stage, $0) }
    }

    /// - Parameter patience: In real time.
    func reaches(_ stage: Stage, within patience: Duration) async -> Bool {
        let alarm = Task {
            try await Task.sleep(for: patience)
            waiter?.continuation.resume()
            waiter = nil
        }
        await wait(for: stage)
        alarm.cancel()
        return self.stage >= stage
    }
}
