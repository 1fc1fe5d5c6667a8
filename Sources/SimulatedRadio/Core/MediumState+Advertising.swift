// SPDX-License-Identifier: MIT

import BluetoothLE

extension MediumState {
    /// Adapters whose controller listens.
    private var listeners: [AdapterID] {
        adapters.values.filter { $0.isReady && !$0.scans.isEmpty }.map(\.id).sorted()
    }

    /// Whether a session's advertisement is on air.
    private func isOnAir(_ session: SessionRecord) -> Bool {
        guard session.isRegistered, session.request != nil, let adapter = adapters[session.adapter], adapter.isReady
        else { return false }
        let pauses = adapter.configuration.pausesAdvertisingWhileConnected || adapter.isAbandoned
        return !pauses || !hasCentral(session.adapter)
    }

    func isAdvertising(_ id: AdapterID) -> Bool {
        sessions.values.contains { $0.adapter == id && $0.advertisingSince != nil }
    }

    /// Starts and stops advertising where its conditions have changed. While nobody listens no timer runs, but the
    /// rhythm is kept: who starts to listen hears the next event when it would have come.
    mutating func refreshAdvertising() {
        guard sessions.values.contains(where: { $0.request != nil }) else { return }
        let listeners = listeners
        for id in sessions.keys.sorted() {
            guard var session = sessions[id] else { continue }
            let isListenedTo = listeners.contains { $0 != session.adapter }
            if isOnAir(session) {
                let isFirst = session.advertisingSince == nil
                let since = session.advertisingSince ?? now
                session.advertisingSince = since
                if !isListenedTo {
                    cancel(&session.advertisingTimer)
                } else if session.advertisingTimer == nil {
                    let interval = session.interval
                    let passed = since.duration(to: now)
                    let next = isFirst ? .zero : interval * (Int(passed / interval) + 1) - passed
                    session.advertisingTimer = schedule(after: next) { $0.advertise(id) }
                }
            } else {
                session.advertisingSince = nil
                cancel(&session.advertisingTimer)
            }
            sessions[id] = session
        }
    }

    /// One advertising event.
    private mutating func advertise(_ id: SessionID) {
        guard let session = sessions[id] else { return }
        sessions[id]?.advertisingTimer = nil
        guard session.advertisingSince != nil else { return }
        for listener in listeners where listener != session.adapter {
            hear(session, at: listener)
        }
        var next = session.interval
        if conditions.advertisingJitter > .zero {
            next += conditions.advertisingJitter * Double.random(in: 0..<1, using: &random)
        }
        let timer = schedule(after: next) { $0.advertise(id) }
        sessions[id]?.advertisingTimer = timer
    }

    private mutating func hear(_ session: SessionRecord, at listener: AdapterID) {
        guard let sender = adapters[session.adapter] else { return }
        let pair = pairs[Pair(sender.id, listener)]
        guard pair?.inRange ?? true else { return }
        let loss = conditions.advertisementLoss
        if loss > 0, Double.random(in: 0..<1, using: &random) < loss { return }
        remember(sender.id, at: listener)
        let report = AdvertisementReport(
            peer: sender.peer,
            address: sender.address,
            advertisement: session.advertisement,
            rssi: pair?.rssi ?? conditions.rssi,
            time: now
        )
        observe(listener, .report(report))
        for scan in adapters[listener]?.scans.keys.sorted() ?? [] { deliver(report, to: scan, of: listener) }
    }

    private mutating func deliver(_ report: AdvertisementReport, to id: ScanID, of listener: AdapterID) {
        guard let scan = adapters[listener]?.scans[id] else { return }
        if scan.seen[report.peer] == nil, scan.seen.count >= Limits.knownPeers { return }
        let merged = scan.seen[report.peer]?.merged(with: report.advertisement) ?? report.advertisement
        adapters[listener]?.scans[id]?.seen[report.peer] = merged
        guard scan.filter.services.isEmpty || !scan.filter.services.isDisjoint(with: merged.serviceUUIDs) else {
            return
        }
        if let minimum = scan.filter.minimumRSSI {
            // 127 says that there is no reading, and no positive value is one.
            guard let rssi = report.rssi, rssi <= 0, rssi >= minimum else { return }
        }
        adapters[listener]?.scans[id]?.reported.insert(report.peer)
        let discovery = Discovery(
            peer: report.peer,
            address: report.address,
            advertisement: merged,
            rssi: report.rssi,
            time: report.time
        )
        post(.discovered(discovery), to: scan.mailbox)
    }

    // MARK: - Scans

    mutating func startScan(
        _ id: AdapterID,
        _ filter: ScanFilter,
        _ mailbox: Mailbox<ScanEvent>
    ) throws(BluetoothError) -> ScanID {
        guard let adapter = adapters[id] else { throw .adapterGone }
        if let error = adapter.unavailability { throw error }
        guard adapter.scans.count < Limits.scans else {
            throw BluetoothError(.limitExceeded, "the adapter has \(Limits.scans) scans under way")
        }
        let scan = ScanID(rawValue: nextNumber())
        adapters[id]?.scans[scan] = ScanRecord(filter: filter, mailbox: mailbox)
        refreshAdvertising()
        return scan
    }

    mutating func stopScan(_ id: AdapterID, _ scan: ScanID) {
        guard let record = adapters[id]?.scans.removeValue(forKey: scan) else { return }
        finish(record.mailbox)
        refreshAdvertising()
    }

    // MARK: - Memory

    /// Notes that a device was heard just now.
    mutating func remember(_ other: AdapterID, at id: AdapterID) {
        guard let peer = adapters[other]?.peer, let adapter = adapters[id] else { return }
        if adapter.known[peer] != nil {
            adapters[id]?.known[peer]?.lastHeard = now
            return
        }
        if adapter.known.count >= Limits.knownPeers,
            let oldest = adapter.known.min(by: { $0.value.lastHeard < $1.value.lastHeard })
        {
            drop(oldest.key, at: id)
        }
        let timer = schedule(after: Limits.peerMemory) { $0.expire(peer, at: id) }
        adapters[id]?.known[peer] = KnownPeer(adapter: other, lastHeard: now, timer: timer)
    }

    private mutating func expire(_ peer: PeerIdentifier, at id: AdapterID) {
        guard let known = adapters[id]?.known[peer] else { return }
        var due = known.lastHeard.advanced(by: Limits.peerMemory)
        // A connected device is not temporary; it is judged anew when it may have become so.
        if link(from: id, to: known.adapter) != nil { due = now.advanced(by: Limits.peerMemory) }
        if due > now {
            let timer = timeline.add({ $0.expire(peer, at: id) }, at: due)
            adapters[id]?.known[peer]?.timer = timer
        } else {
            drop(peer, at: id)
        }
    }

    private mutating func drop(_ peer: PeerIdentifier, at id: AdapterID) {
        if let timer = adapters[id]?.known.removeValue(forKey: peer)?.timer { timeline.remove(timer) }
        for scan in adapters[id]?.scans.keys.sorted() ?? [] {
            guard let record = adapters[id]?.scans[scan] else { continue }
            adapters[id]?.scans[scan]?.seen[peer] = nil
            if adapters[id]?.scans[scan]?.reported.remove(peer) != nil { post(.gone(peer), to: record.mailbox) }
        }
    }

    mutating func forget(_ peer: PeerIdentifier, at id: AdapterID) {
        disconnectPeer(peer, of: id)
        drop(peer, at: id)
    }
}

extension Advertisement {
    fileprivate func merged(with newer: Advertisement) -> Advertisement {
        var result = self
        result.localName = newer.localName ?? localName
        result.serviceUUIDs.formUnion(newer.serviceUUIDs)
        result.serviceData.merge(newer.serviceData) { $1 }
        result.manufacturerData.merge(newer.manufacturerData) { $1 }
        result.txPower = newer.txPower ?? txPower
        return result
    }
}

extension BluetoothError {
    static let adapterGone = BluetoothError(.adapterNotFound, "the adapter has left the medium")
}
