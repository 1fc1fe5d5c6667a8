// SPDX-License-Identifier: MIT

/// A call that waits for a gate.
struct GateWaiter {
    let gate: SessionGate
    let deadline: ContinuousClock.Instant
    let continuation: CheckedContinuation<Void, Never>
}

extension SessionCore {
    func wait(for gate: SessionGate, _ timeout: Duration) async throws(DeviceSessionError) {
        if let result = verdict(on: gate) { return try result.get() }
        guard waiters.count < Limits.gateWaiters else {
            throw DeviceSessionError(.limitExceeded, "\(Limits.gateWaiters) calls wait for a gate already")
        }
        let id = nextID()
        let deadline = now + timeout.bounded
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiters[id] = GateWaiter(gate: gate, deadline: deadline, continuation: continuation)
                // A cancellation from now on finds the waiter; an earlier one is seen here.
                if Task.isCancelled { finishWaiter(id, .failure(.cancelled)) }
                rearm()
            }
        } onCancel: {
            Task { await self.finishWaiter(id, .failure(.cancelled)) }
        }
        try (gateResults.removeValue(forKey: id) ?? .failure(.cancelled)).get()
    }

    /// What there is to say about a gate at once; `nil`: it may still open.
    private func verdict(on gate: SessionGate) -> Result<Void, DeviceSessionError>? {
        switch phase {
        case .tornDown: return .failure(.tornDown)
        case .failed:
            guard case .failed(let error) = board.state else { return nil }
            return .failure(error)
        case .connected:
            switch gate {
            case .connected: return .success(())
            case .commandReady:
                if board.isCommandReady { return .success(()) }
                return channelFailure.map { .failure($0) }
            case .deviceInfoReady:
                return board.isDeviceInfoReady ? .success(()) : nil
            }
        case .idle, .scanning, .connecting, .disconnecting: return nil
        }
    }

    /// Lets those go whose gate is open, or will not open.
    func settleGates() {
        for (id, waiter) in waiters {
            if let result = verdict(on: waiter.gate) { finishWaiter(id, result) }
        }
    }

    func failGates(_ error: DeviceSessionError) {
        for id in waiters.keys { finishWaiter(id, .failure(error)) }
    }

    func expireGates(at now: ContinuousClock.Instant) {
        for (id, waiter) in waiters where waiter.deadline <= now {
            finishWaiter(
                id,
                .failure(DeviceSessionError(.timedOut, "the session was not \(waiter.gate) in time"))
            )
        }
    }

    private func finishWaiter(_ id: UInt64, _ result: Result<Void, DeviceSessionError>) {
        guard let waiter = waiters.removeValue(forKey: id) else { return }
        gateResults[id] = result
        waiter.continuation.resume()
    }
}
