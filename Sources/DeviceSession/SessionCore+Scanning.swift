// SPDX-License-Identifier: MIT

import BluetoothLE

/// A scan of a session, from the wish for it on.
struct ScanRun {
    var table: ScanTable
    /// The radio's scan, once there is one.
    let starting: Task<Result<Scan, BluetoothError>, Never>
    var pump: Task<Void, Never>?
}

extension SessionCore {
    func startScan(_ rules: ScanRules) async throws(DeviceSessionError) {
        switch phase {
        case .idle, .failed: break
        case .scanning: await stopScan()
        case .connecting, .connected, .disconnecting:
            throw DeviceSessionError(
                .invalidState, "a session does not scan while it has a connection", advice: "Disconnect first.")
        case .tornDown: throw .tornDown
        }
        switch phase {
        case .idle, .failed: break
        default: throw DeviceSessionError(.invalidState, "something else was begun meanwhile")
        }
        run += 1
        let run = run
        let starting = Task { [radio] () -> Result<Scan, BluetoothError> in
            do throws(BluetoothError) {
                return .success(try await radio.scan(for: ScanFilter(services: rules.services)))
            } catch {
                return .failure(error)
            }
        }
        publish([])
        enter(.scanning(ScanRun(table: ScanTable(rules), starting: starting)), .scanning)
        let result = await withTaskCancellationHandler {
            await starting.value
        } onCancel: {
            starting.cancel()
        }
        switch result {
        case .success(let scan):
            guard run == self.run, case .scanning(var current) = phase else {
                await scan.stop()
                throw phaseError
            }
            current.pump = Task { [weak self] in
                for await event in scan.events { await self?.heard(event, run: run) }
                await self?.scanEnded(run: run)
            }
            phase = .scanning(current)
        case .failure(let error):
            guard run == self.run else { throw phaseError }
            let failure = DeviceSessionError(radio: error, otherwise: .radioUnavailable)
            self.run += 1
            if failure.code == .cancelled { enter(.idle, .idle) } else { enter(.failed, .failed(failure)) }
            throw failure
        }
    }

    /// Why a call that was overtaken ends.
    var phaseError: DeviceSessionError {
        if case .tornDown = phase { .tornDown } else { .cancelled }
    }

    /// Returns when the radio has been told: connecting can depend on it.
    func stopScan() async {
        guard case .scanning(let scan) = phase else { return }
        run += 1
        enter(.idle, .idle)
        await end(scan)
    }

    func end(_ scan: ScanRun) async {
        scan.pump?.cancel()
        scan.starting.cancel()
        board.scanInterruption = nil
        // A task of its own: this one may be cancelled, and the radio must be told all the same.
        await Task { if case .success(let scan) = await scan.starting.value { await scan.stop() } }.value
    }

    private func heard(_ event: ScanEvent, run: Int) {
        guard run == self.run, case .scanning(var scan) = phase else { return }
        switch event {
        case .discovered(let discovery): scan.table.heard(discovery, at: now)
        case .gone(let peer): scan.table.gone(peer)
        case .paused(let error):
            log(.warning, "the scan pauses: \(error)")
            board.scanInterruption = error
        case .resumed:
            board.scanInterruption = nil
        }
        phase = .scanning(scan)
        publish(scan.table.results)
        rearm()
    }

    /// The radio has ended the scan by itself, which it does when it is shut down.
    private func scanEnded(run: Int) {
        guard run == self.run, case .scanning = phase else { return }
        self.run += 1
        let failure = DeviceSessionError(.radioUnavailable, "the radio has ended the scan")
        enter(.failed, .failed(failure))
    }

    func expireScan(at now: ContinuousClock.Instant) {
        guard case .scanning(var scan) = phase else { return }
        scan.table.timerFired(at: now)
        phase = .scanning(scan)
        publish(scan.table.results)
    }

    private func publish(_ results: [ScanResult]) {
        guard results != board.scanResults else { return }
        board.scanResults = results
        resultStreams.send(results)
    }
}
