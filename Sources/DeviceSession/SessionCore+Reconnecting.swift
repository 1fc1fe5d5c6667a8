// SPDX-License-Identifier: MIT

import BluetoothLE

/// After a loss.
extension SessionCore {
    func reconnect(_ link: Link, after loss: DeviceSessionError) {
        let run = run
        let (lost, peer) = (link.connection, link.peer)
        let policy = configuration.reconnection
        let attempt = Task { [weak self, radio] () throws -> any PeripheralConnection in
            // Nothing to do where it is down; the radio may have told only that its adapter is away.
            await lost.disconnect()
            var last: any Error = loss
            var number = 1
            var isExcused = false
            while let pause = policy.pause(before: number) {
                try await radio.clock.sleep(for: pause)
                try await Self.power(of: radio) { [weak self] in await self?.waits(for: $0, run: run) }
                await self?.log(.info, "attempt \(number) of \(policy.attempts) to connect again")
                do {
                    guard let self else { throw CancellationError() }
                    return try await self.attempt(peer)
                } catch {
                    try Task.checkCancellation()
                    last = error
                }
                // What the adapter is to blame for was no attempt. One that is back already may have been away meanwhile:
                // it gets the benefit of the doubt once for each number, so that the attempts come to an end.
                if await Self.isAway(radio) { continue }
                if !isExcused, Self.connectFailure(last).code == .radioUnavailable {
                    isExcused = true
                    continue
                }
                isExcused = false
                number += 1
            }
            throw last
        }
        enter(.connecting(attempt), .connecting)
        Task { [weak self] in
            let result = await attempt.result
            if let self { return await self.reconnected(result, peer, run: run) }
            if case .success(let connection) = result { await connection.disconnect() }
        }
    }

    private func reconnected(
        _ result: Result<any PeripheralConnection, any Error>,
        _ peer: PeerIdentifier,
        run: Int
    ) async {
        switch result {
        case .success(let connection):
            guard run == self.run else { return await connection.disconnect() }
            linkUp(connection, peer)
        case .failure(let error):
            guard run == self.run else { return }
            self.run += 1
            let failure = error as? DeviceSessionError ?? Self.connectFailure(error)
            perform(channel.close(failure))
            enter(.failed, .failed(failure))
        }
    }

    // MARK: Power

    /// Returns once the adapter is powered on; also where the radio does not know, or will say nothing more: the attempt
    /// then tells.
    ///
    /// - Parameter tell: Told why there is something to wait for, and at last `nil`.
    /// - Throws: `CancellationError`.
    private static func power(
        of radio: any Central,
        _ tell: @Sendable (BluetoothError?) async -> Void
    ) async throws {
        for await status in statuses(of: radio) {
            if status.state == .poweredOn { break }
            if let error = status.error { await tell(error) }
        }
        try Task.checkCancellation()
        await tell(nil)
    }

    /// Whether the adapter says at this moment that it cannot be used.
    private static func isAway(_ radio: any Central) async -> Bool {
        for await status in statuses(of: radio) where status.state != .unknown { return status.state != .poweredOn }
        return false
    }

    /// The adapter's states, up to one that stays unknown: a bridge need never know more.
    private static func statuses(of radio: any Central) -> AsyncStream<AdapterStatus> {
        let (stream, told) = AsyncStream.makeStream(of: AdapterStatus.self, bufferingPolicy: .bufferingNewest(1))
        let reading = Task(executorPreference: radio.taskExecutor) {
            var patience: Task<Void, Never>?
            for await status in radio.adapterStatuses() {
                patience?.cancel()
                patience = nil
                if status.state == .unknown {
                    patience = Task(executorPreference: radio.taskExecutor) {
                        do { try await radio.clock.sleep(for: Limits.unknownAdapter) } catch { return }
                        told.finish()
                    }
                }
                told.yield(status)
            }
            patience?.cancel()
            told.finish()
        }
        told.onTermination = { _ in reading.cancel() }
        return stream
    }

    private func waits(for error: BluetoothError?, run: Int) {
        guard run == self.run, case .connecting = phase, board.connectInterruption != error else { return }
        board.connectInterruption = error
        guard let error else { return log(.info, "no longer waiting for the adapter") }
        log(.warning, "waiting for the adapter: \(error)")
    }

    // MARK: One attempt

    /// One attempt; a device that the radio has forgotten is searched for first.
    private nonisolated func attempt(_ peer: PeerIdentifier) async throws -> any PeripheralConnection {
        let timeout = configuration.connectTimeout.bounded
        do throws(BluetoothError) {
            return try await radio.connect(to: peer, timeout: timeout)
        } catch {
            guard error.code == .peerNotFound else { throw error }
        }
        let found = try await radio.hear(within: timeout) { $0.peer == peer }
        try Task.checkCancellation()
        guard found != nil else {
            throw BluetoothError(.peerNotFound, "the device was not heard again", subject: peer.rawValue)
        }
        return try await radio.connect(to: peer, timeout: timeout)
    }
}
