// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// One scan of the contract. All scans share bluetoothd's one discovery session.
final class ScanState {
    let events: AsyncStream<ScanEvent>.Continuation
    var sightings: SightingFilter
    var isPaused = false

    init(_ filter: ScanFilter, _ events: AsyncStream<ScanEvent>.Continuation) {
        self.events = events
        sightings = SightingFilter(filter)
    }
}

// Scans (rules 17, 18, 19).
extension RadioCore {
    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan {
        beginOperation()
        defer { endOperation() }
        try await ready()
        _ = try requireAdapter()
        guard scans.count < Limits.scans else {
            throw BluetoothError(.limitExceeded, "this radio runs \(Limits.scans) scans already")
        }
        let id = newID()
        let (stream, events) = AsyncStream.makeStream(
            of: ScanEvent.self, bufferingPolicy: .bufferingNewest(Limits.scanEvents))
        events.onTermination = { [weak self] _ in
            guard let self else { return }
            Task(executorPreference: loop) { await self.stopScan(id) }
        }
        scans[id] = ScanState(filter, events)
        if scans.count == 1 { view.rememberDevices() }
        reportConnected(to: id)
        perform(discovery.want(mergedFilter))
        if let error = await discoverySettled(cancellable: true) {
            await stopScan(id)
            throw error
        }
        return Scan(events: stream) { await self.stopScan(id) }
    }

    /// A device that is connected does not advertise, and BlueZ keeps the link of an app that was killed (rule 23): who
    /// starts anew would never hear its host. Such a device is here, so the scan tells of it, without a reading.
    private func reportConnected(to id: UInt64) {
        guard let adapter = usableAdapter, let scan = scans[id] else { return }
        for (path, device) in view.devices where path.isBeneath(adapter) && device.connected {
            guard activeLinks[path] == nil, scan.sightings.admitsConnected(path, device) else { continue }
            scan.events.yield(.discovered(discovery(path, device, rssi: nil)))
        }
    }

    private func discovery(
        _ path: ObjectPath, _ device: Device1, rssi: Int?, with service: BluetoothUUID? = nil
    ) -> Discovery {
        var advertisement = device.advertisement
        if let service { advertisement.serviceUUIDs.insert(service) }
        return Discovery(
            peer: PeerIdentifier(path.string), address: device.address, advertisement: advertisement, rssi: rssi,
            time: .now)
    }

    /// Comes to its end even in a cancelled task: what is left running costs power.
    func stopScan(_ id: UInt64) async {
        guard let scan = scans.removeValue(forKey: id) else { return }
        scan.events.finish()
        perform(discovery.want(mergedFilter))
        _ = await discoverySettled(cancellable: false)
        releaseIfUnused()
    }

    private var mergedFilter: DiscoveryFilter? { DiscoveryFilter(merging: scans.values.map(\.sightings.filter)) }

    private func discoverySettled(cancellable: Bool) async -> BluetoothError? {
        guard usableAdapter != nil, !discovery.isSettled else { return nil }
        let id = newWaiter()
        discoveryWaiters.append(id)
        return await wait(id, timeout: cancellable ? Limits.call : Limits.stop, cancellable: cancellable)
    }

    private func perform(_ next: DiscoveryMachine.Call?) {
        discoveryTimer?.cancel()
        discoveryTimer = nil
        guard let next, let adapter = usableAdapter else {
            if discovery.isSettled { wake(&discoveryWaiters) }
            return
        }
        let call: DBusCall =
            switch next {
            case .setFilter(let filter):
                Adapter1.setDiscoveryFilter(
                    adapter, filter, byService: view.adapters[adapter]?.filtersByService ?? false)
            case .start: startDiscovery(adapter)
            case .stop: Adapter1.stopDiscovery(adapter)
            }
        let asked = generation
        send(call) { core, result in
            guard core.generation == asked, core.usableAdapter == adapter else { return }
            core.discoveryAnswered(next, result)
        }
    }

    private func startDiscovery(_ adapter: ObjectPath) -> DBusCall {
        discoversAlone = view.adapters[adapter]?.discovering == false
        return Adapter1.startDiscovery(adapter)
    }

    private func discoveryAnswered(_ call: DiscoveryMachine.Call, _ result: Result<[DBusValue], DBusError>) {
        var outcome = DiscoveryMachine.Outcome.done
        if case .failure(let error) = result, call != .stop {
            if error.name == BlueZError.inProgress, call == .start {
                outcome = .heldUp
            } else {
                outcome = error.code == .timedOut ? .unanswered : .failed
            }
            // Held up is no failure: the scan is there, and hears when bluetoothd lets it.
            wake(&discoveryWaiters, with: outcome == .heldUp ? nil : BlueZFailure.error(error, during: .discover))
        }
        let next = discovery.answered(call, outcome)
        // Not while there is a link: what uses it would give it up.
        if discovery.isStuck, activeLinks.isEmpty { tellPaused(BlueZFailure.scanRefused) }
        if outcome == .done, call == .start {
            discoveryPause.reset()
            tellResumed()
        }
        perform(next)
        if outcome != .done { retryDiscovery(after: outcome == .heldUp ? Limits.discoverHeldUp : nil) }
    }

    /// - Parameter pause: nil: the growing one.
    private func retryDiscovery(after pause: Duration?) {
        guard !scans.isEmpty else { return }
        discoveryTimer = loop.schedule(after: pause ?? discoveryPause.next()) { [weak self] in
            self?.assumeIsolated { core in
                core.discoveryTimer = nil
                guard core.usableAdapter != nil, !core.scans.isEmpty else { return }
                core.perform(core.discovery.adapterReady())
            }
        }
    }

    // MARK: The adapter

    func pauseScans(_ error: BluetoothError) {
        discovery.adapterLost()
        discoveryTimer?.cancel()
        discoveryTimer = nil
        wake(&discoveryWaiters, with: error)
        tellPaused(error)
    }

    func resumeScans() {
        discoveryPause.reset()
        tellResumed()
        perform(discovery.adapterReady())
    }

    private func tellPaused(_ error: BluetoothError) {
        for scan in scans.values where !scan.isPaused {
            scan.isPaused = true
            scan.sightings.reset()
            scan.events.yield(.paused(error))
        }
    }

    private func tellResumed() {
        for scan in scans.values where scan.isPaused {
            scan.isPaused = false
            scan.events.yield(.resumed)
        }
    }

    // MARK: Devices

    func deviceHeard(_ path: ObjectPath, _ change: Device1.Change) {
        guard !scans.isEmpty, let device = view.devices[path], let adapter = usableAdapter, path.isBeneath(adapter)
        else { return }
        if discovery.isStuck { tellResumed() }
        discovery.heard()
        for scan in scans.values {
            let isFiltered = isFiltered(by: scan.sightings.filter, adapter)
            guard let report = scan.sightings.judge(path, device, change, isFiltered: isFiltered) else { continue }
            scan.events.yield(.discovered(discovery(path, device, rssi: report.rssi, with: report.service)))
        }
    }

    /// bluetoothd adds nothing to the `UUIDs` of a device whose services it remembers from a connection, whatever the device
    /// advertises since (src/device.c, device_add_eir_uuids): a phone that was a client yesterday and is a host today
    /// would never be found. But what its filter keeps out it does not tell of, not even a reading (src/adapter.c,
    /// is_filter_match); so where the filter is this scan's alone, being heard is having the service.
    ///
    /// Nearly: another program that begins to discover later, its advertisement monitors, and LE Audio's sets (RSI) get
    /// through, too. Then a device that bluetoothd remembers is connected to for nothing, as one is that says it has the
    /// service and has not.
    private func isFiltered(by filter: ScanFilter, _ adapter: ObjectPath) -> Bool {
        guard discoversAlone, discovery.isRunning, view.adapters[adapter]?.filtersByService == true else {
            return false
        }
        return !filter.services.isEmpty && discovery.applied?.services == filter.services.sorted()
    }

    func deviceGone(_ path: ObjectPath) {
        for scan in scans.values where scan.sightings.forget(path) {
            scan.events.yield(.gone(PeerIdentifier(path.string)))
        }
    }
}
