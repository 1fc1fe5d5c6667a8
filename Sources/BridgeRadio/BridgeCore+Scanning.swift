// SPDX-License-Identifier: MIT

import BluetoothLE

/// One scan of this radio. The bridge is told what all of them want together, and each takes what is its own.
final class LocalScan {
    let filter: ScanFilter
    let events: AsyncStream<ScanEvent>.Continuation
    private var reported: Set<PeerIdentifier> = []
    private(set) var isPaused = false

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

extension BridgeCore {
    func startScan(
        _ id: Int,
        _ filter: ScanFilter,
        _ events: AsyncStream<ScanEvent>.Continuation
    ) async throws(BluetoothError) {
        retain()
        do throws(BluetoothError) {
            let wire = try await wire()
            if status.state != .poweredOn, status.state != .unknown { throw status.error }
            scans[id] = LocalScan(filter, events)
            try await updateScan(on: wire)
        } catch {
            scans[id] = nil
            events.finish()
            release()
            throw error
        }
    }

    func stopScan(_ id: Int) async {
        guard let scan = scans.removeValue(forKey: id) else { return }
        scan.events.finish()
        defer { release() }
        guard case .connected(let wire) = phase else { return }
        try? await updateScan(on: wire)
    }

    /// What all scans want together: nothing named is everything.
    private var wanted: Set<BluetoothUUID>? {
        if scans.isEmpty { return nil }
        if scans.values.contains(where: { $0.filter.services.isEmpty }) { return [] }
        let all = scans.values.reduce(into: Set<BluetoothUUID>()) { $0.formUnion($1.filter.services) }
        return all.count <= BridgeLimits.uuids ? all : []
    }

    private func updateScan(on wire: Wire) async throws(BluetoothError) {
        let wanted = wanted
        guard wanted != scanned else { return }
        let before = scanned
        scanned = wanted
        do throws(BluetoothError) {
            if let wanted {
                try await call(.startScan(services: wanted.sorted(), allowDuplicates: true))
            } else {
                // Told in any case, also by a task that has been cancelled.
                try send(BridgeRequest(.stopScan), on: wire)
            }
        } catch {
            // Whatever the bridge does now, it is to do what it did before.
            if scanned == wanted { scanned = before }
            let command: BridgeCommand =
                before.map { .startScan(services: $0.sorted(), allowDuplicates: true) } ?? .stopScan
            try? send(BridgeRequest(command), on: wire)
            throw error
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
        if !wire.isExtended { scanned = nil }
        guard scanned != wanted else {
            for scan in scans.values { scan.resume() }
            return
        }
        Task {
            try? await self.updateScan(on: wire)
            for scan in self.scans.values { scan.resume() }
        }
    }
}
