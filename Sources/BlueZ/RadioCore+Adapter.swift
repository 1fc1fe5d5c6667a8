// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

// The adapter in use, and its states (rule 26).
extension RadioCore {
    /// - Throws: Why there is none that can be used.
    func requireAdapter() throws(BluetoothError) -> Adapter1 {
        if case .failed(let error) = viewState { throw error }
        guard let adapter = choice.pick(from: view.adapters.values, current: chosenAdapter) else {
            throw choice.absence(among: view.adapters.values)
        }
        guard adapter.hasLE else {
            throw BluetoothError(
                .notSupported, "this adapter does not do Bluetooth LE", advice: "Use another one.",
                subject: adapter.name)
        }
        if let error = adapter.powerError(block: readBlock(adapter.name)) { throw error }
        return adapter
    }

    /// The view changed: another adapter may be the one, or the same may be of use again, or no longer.
    func adapterMayHaveChanged() {
        let adapter = choice.pick(from: view.adapters.values, current: chosenAdapter)
        chosenAdapter = adapter?.path
        let usable = adapter.flatMap { $0.powered && $0.hasLE ? $0.path : nil }
        if usable != usableAdapter {
            let before = usableAdapter
            usableAdapter = usable
            if let before {
                let error: BluetoothError
                do throws(BluetoothError) {
                    _ = try requireAdapter()
                    error = BluetoothError(.adapterNotFound, "the adapter in use is gone", subject: before.lastElement)
                } catch let reason {
                    error = reason
                }
                for (path, id) in activeLinks where path.isBeneath(before) { linkDown(id, .adapterLost, error) }
                if view.adapters[before] != nil { takeBackAdvertisements(from: before) }
                adapterLost(error)
            }
            if usable != nil { adapterCame() }
        }
        publishStatus()
    }

    private func adapterCame() {
        resumeScans()
        for session in sessions.keys.sorted() { reconcile(session) }
    }

    /// Also when bluetoothd or the bus is lost.
    func adapterLost(_ error: BluetoothError) {
        pauseScans(error)
        for session in sessions.values { interrupt(session, error) }
    }

    // MARK: Status streams

    func addStatusStream(_ id: UInt64, _ stream: AsyncStream<AdapterStatus>.Continuation) {
        guard statusStreams.count < Limits.statusStreams else {
            stream.finish()
            return
        }
        statusStreams[id] = stream
        startConnector()
        reviveView()
        let status = currentStatus()
        lastStatus = status
        // Its reader may have gone before its end could be told.
        if case .terminated = stream.yield(status) { removeStatusStream(id) }
    }

    func removeStatusStream(_ id: UInt64) {
        guard statusStreams.removeValue(forKey: id) != nil else { return }
        releaseIfUnused()
    }

    func publishStatus() {
        guard !statusStreams.isEmpty else { return }
        let status = currentStatus()
        guard status != lastStatus else { return }
        lastStatus = status
        for stream in statusStreams.values { stream.yield(status) }
    }

    func currentStatus() -> AdapterStatus {
        switch viewState {
        case .none, .loading:
            if let busError { return status(for: BlueZFailure.error(busError, during: .reach)) }
            return AdapterStatus(hadService ? .resetting : .unknown)
        case .failed(let error):
            return status(for: error)
        case .loaded:
            let adapter = choice.pick(from: view.adapters.values, current: chosenAdapter)
            do throws(BluetoothError) {
                let usable = try requireAdapter()
                return AdapterStatus(.poweredOn, adapter: usable.name, address: usable.address)
            } catch {
                var status = status(for: error)
                status.adapter = adapter?.name
                status.address = adapter?.address
                return status
            }
        }
    }

    private func status(for error: BluetoothError) -> AdapterStatus {
        let state: AdapterState =
            switch error.code {
            case .unauthorized: .unauthorized
            case .poweredOff: .poweredOff
            case .resetting: .resetting
            case .serviceUnavailable where hadService: .resetting
            default: .unsupported
            }
        return AdapterStatus(state, reason: error)
    }
}
