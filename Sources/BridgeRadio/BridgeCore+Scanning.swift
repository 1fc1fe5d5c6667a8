// SPDX-License-Identifier: MIT

import BluetoothLE

/// One scan of this radio. The bridge is told what all of them want together, and each takes what is its own.
final class LocalScan {
    let filter: ScanFilter
    let events: AsyncStream<ScanEvent>.Continuation
    private var reported: Set<PeerIdentifier> = []
    private(set) var isPaused = false
    /// Whether the bridge has been told what it wants, or never will be.
    let start = Latch<Result<Void, BluetoothError>>()

    init(_ filter: ScanFilter, _ events: AsyncStream<ScanEvent>.Continuation) {
        self.filter = filter
        self.events = events
    }

    func report(_ discovery: Discovery) {
        if !filter.services.isEmpty, filter.services.isDisjoint(with: discovery.advertisement.serviceUUIDs) { return }
        if let minimum = filter.minimumRSSI {
            // 127 stands for no reading, and no positive value is a sensible one.
            guard let rssi = discovery.rssi, rssi <= 0, rssi >= minimum else { return }
        }
        if reported.count < BridgeLimits.devices { reported.insert(discovery.peer) }
        events.yield(.discovered(discovery))
    }

    func lose(_ peer: PeerIdentifier) {
        if reported.remove(peer) != nil { events.yield(.gone(peer)) }
    }

    func pause(_ error: BluetoothError) {
        guard !isPaused else { return }
        isPaused = true
        reported = []
        events.yield(.paused(error))
    }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        events.yield(.resumed)
    }
}

/// What the bridge scans for, on behalf of all scans here.
enum BridgedScan: Equatable {
    case nothing
    /// It was told something and has not said that it does it.
    case unknown
    /// An empty set is everything.
    case services(Set<BluetoothUUID>)

    /// Whether a scan with this filter hears all that it wants.
    func covers(_ filter: ScanFilter) -> Bool {
        guard case .services(let services) = self else { return false }
        return services.isEmpty || !filter.services.isEmpty && filter.services.isSubset(of: services)
    }
}

extension BridgeCore {
    func startScan(
        _ id: Int,
        _ filter: ScanFilter,
        _ events: AsyncStream<ScanEvent>.Continuation
    ) async throws(BluetoothError) {
        retain()
        do throws(BluetoothError) {
            _ = try await wire()
            if status.state != .poweredOn, status.state != .unknown { throw status.bridgeError }
        } catch {
            events.finish()
            release()
            throw error
        }
        let scan = LocalScan(filter, events)
        scans[id] = scan
        tellScans()
        do throws(BluetoothError) {
            try await scan.start.value(orWhenCancelled: .failure(.cancelled)).get()
            if Task.isCancelled { throw .cancelled }
        } catch {
            drop(id, error)
            tellScans()
            // What is under way for others is not waited for; the end of one's own is (contract).
            if scanCall == nil || scanCall?.isCancelled == true { await scanTelling?.value }
            throw error
        }
    }

    /// Returns when the bridge has been told.
    func stopScans(_ ids: [Int]) async {
        guard ids.contains(where: { scans[$0] != nil }) else { return }
        for id in ids { drop(id, .cancelled) }
        tellScans()
        await scanTelling?.value
    }

    private func drop(_ id: Int, _ error: BluetoothError) {
        guard let scan = scans.removeValue(forKey: id) else { return }
        scan.events.finish()
        scan.start.set(.failure(error))
        release()
    }

    /// What all scans want together.
    private var wanted: BridgedScan {
        if scans.isEmpty { return .nothing }
        if scans.values.contains(where: { $0.filter.services.isEmpty }) { return .services([]) }
        let all = scans.values.reduce(into: Set<BluetoothUUID>()) { $0.formUnion($1.filter.services) }
        return .services(all.count <= BridgeLimits.uuids ? all : [])
    }

    /// Makes the bridge scan for what all scans want together. In a task of its own, one call after another: a scan that
    /// is cancelled, or refused, must not undo what another one relies on.
    private func tellScans() {
        guard scanTelling == nil else {
            // Nobody wants any more what the bridge is being asked for.
            if scanned == wanted { scanCall?.cancel() }
            return
        }
        guard scanned != wanted else { return scansAreTold() }
        scanTelling = Task { await self.tellWanted() }
    }

    private func tellWanted() async {
        defer { scanTelling = nil }
        while case .connected(let wire) = phase {
            let wish = wanted
            guard scanned != wish else { return scansAreTold() }
            guard case .services(let services) = wish else {
                try? send(BridgeRequest(.stopScan), on: wire)
                scanned = .nothing
                continue
            }
            let before = scanned
            let (result, isCalledOff) = await callScan(services)
            guard case .connected(let now) = phase, now.socket === wire.socket else {
                // A new connection knows nothing of it.
                if case .failure(let error) = result { fail(wish, error) }
                continue
            }
            switch result {
            case .success:
                scanned = wish
                for scan in scans.values where wish.covers(scan.filter) { scan.start.set(.success(())) }
            case .failure(let error):
                // Whatever the bridge does now, it is told anew what it is to do: at once, where that is something else.
                scanned = .unknown
                if isCalledOff || fail(wish, error) || wanted != wish { continue }
                return refused(error, before)
            }
        }
        let error: BluetoothError = if case .failed(let error) = phase { error } else { .bridgeClosed }
        for (id, scan) in scans where scan.start.value == nil { drop(id, error) }
    }

    private func callScan(_ services: Set<BluetoothUUID>) async -> (Result<Void, BluetoothError>, isCalledOff: Bool) {
        let call = Task { () -> Result<Void, BluetoothError> in
            do throws(BluetoothError) {
                try await self.call(.startScan(services: services.sorted(), allowDuplicates: true))
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        scanCall = call
        let result = await call.value
        scanCall = nil
        return (result, call.isCancelled)
    }

    /// Ends the scans that have waited for this.
    ///
    /// - Returns: whether any scan still waits, or did.
    @discardableResult
    private func fail(_ wish: BridgedScan, _ error: BluetoothError) -> Bool {
        let waiting = scans.filter { $0.value.start.value == nil }
        for (id, scan) in waiting where wish.covers(scan.filter) { drop(id, error) }
        return !waiting.isEmpty
    }

    /// The bridge does not do what scans want that it did before.
    private func refused(_ error: BluetoothError, _ before: BridgedScan) {
        // It was only to do less: then it still does more.
        if !scans.values.allSatisfy({ before.covers($0.filter) }) { pauseScans(error) }
        scanRetry?.cancel()
        scanRetry = Task {
            try? await Task.sleep(for: BridgeLimits.reconnect.upperBound)
            // An adapter that is away tells when it is back.
            if !Task.isCancelled, self.status.state == .poweredOn { self.tellScans() }
        }
    }

    private func scansAreTold() {
        for scan in scans.values {
            scan.start.set(.success(()))
            if status.state == .poweredOn || status.state == .unknown { scan.resume() }
        }
    }

    func report(_ address: String, _ advertisement: Advertisement, _ rssi: Int) {
        let discovery = Discovery(
            peer: PeerIdentifier(address),
            address: BluetoothAddress(address),
            advertisement: advertisement,
            rssi: rssi == 127 ? nil : rssi,
            time: .now
        )
        for scan in scans.values { scan.report(discovery) }
    }

    func pauseScans(_ error: BluetoothError) {
        for scan in scans.values { scan.pause(error) }
    }

    /// A bridge of the extension goes on by itself unless the connection was lost; another has to be told.
    func resumeScans() {
        guard case .connected(let wire) = phase else { return }
        if !wire.isExtended { scanned = .nothing }
        tellScans()
    }
}
