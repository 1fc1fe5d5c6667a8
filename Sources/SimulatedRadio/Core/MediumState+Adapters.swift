// SPDX-License-Identifier: MIT

import BluetoothLE

extension MediumState {
    mutating func addAdapter(
        name: String?,
        address: BluetoothAddress?,
        configuration: AdapterConfiguration
    ) -> AdapterRecord {
        let id = AdapterID(rawValue: nextNumber())
        var own = address ?? BluetoothAddress(rawValue: 0x0200_0000_0000 | id.rawValue)
        // Two adapters of one address could not be told apart: the later one gets another.
        while addresses[PeerIdentifier(own.description)] != nil {
            own = BluetoothAddress(rawValue: 0x0200_0000_0000 | nextNumber(), kind: own.kind)
        }
        let record = AdapterRecord(
            id: id,
            name: name ?? "sim\(id.rawValue)",
            address: own,
            peer: PeerIdentifier(own.description),
            configuration: configuration
        )
        adapters[id] = record
        addresses[record.peer] = id
        return record
    }

    mutating func removeAdapter(_ id: AdapterID) {
        guard let adapter = adapters[id] else { return }
        reset(id)
        for mailbox in adapter.statusReaders.values { finish(mailbox) }
        adapters[id] = nil
        addresses[adapter.peer] = nil
        pairs = pairs.filter { $0.key.from != id && $0.key.to != id }
    }

    mutating func configure(_ id: AdapterID, _ configuration: AdapterConfiguration) {
        adapters[id]?.configuration = configuration
        refresh()
    }

    /// Ends all that an adapter does, for good.
    mutating func reset(_ id: AdapterID) {
        for scan in adapters[id]?.scans.keys.sorted() ?? [] { stopScan(id, scan) }
        for session in sessionIDs(of: id) { stopSession(session) }
        failConnects(of: id, .daemonGone)
        for link in linkIDs(of: id) { takeDown(link, central: .remote, peripheral: .remote, alsoEnding: id) }
        forgetPeers(of: id)
        adapters[id]?.isAbandoned = false
        refresh()
    }

    // MARK: - States

    func status(of id: AdapterID) -> AdapterStatus {
        adapters[id]?.status ?? AdapterStatus(.unsupported)
    }

    mutating func addStatusReader(_ id: AdapterID, _ mailbox: Mailbox<AdapterStatus>) -> UInt64? {
        guard let adapter = adapters[id], adapter.statusReaders.count < Limits.statusReaders else { return nil }
        let reader = nextNumber()
        adapters[id]?.statusReaders[reader] = mailbox
        post(adapter.status, to: mailbox)
        return reader
    }

    mutating func removeStatusReader(_ id: AdapterID, _ reader: UInt64) {
        if let mailbox = adapters[id]?.statusReaders.removeValue(forKey: reader) { finish(mailbox) }
    }

    /// Changes a switch, and does what follows from it.
    mutating func change(
        _ id: AdapterID,
        _ interruption: Interruption,
        _ switchOver: (inout AdapterRecord) -> Void
    ) {
        guard var adapter = adapters[id] else { return }
        let before = adapter.status
        let wasReady = adapter.isReady
        switchOver(&adapter)
        adapters[id] = adapter
        guard adapter.status != before else { return }
        for reader in adapter.statusReaders.keys.sorted() {
            if let mailbox = adapter.statusReaders[reader] { post(adapter.status, to: mailbox) }
        }
        if wasReady, let error = adapter.interruption { interrupt(id, interruption, error) }
        observe(id, .status(adapter.status))
        if !wasReady, adapter.isReady { resume(id) }
    }

    private mutating func interrupt(_ id: AdapterID, _ interruption: Interruption, _ error: BluetoothError) {
        failConnects(of: id, error)
        for link in linkIDs(of: id) { interrupt(link, at: id, interruption, error) }
        guard let adapter = adapters[id] else { return }
        for scan in adapter.scans.keys.sorted() {
            if let mailbox = adapter.scans[scan]?.mailbox { post(.paused(error), to: mailbox) }
            adapters[id]?.scans[scan]?.seen = [:]
            adapters[id]?.scans[scan]?.reported = []
        }
        forgetPeers(of: id)
        for session in sessionIDs(of: id) {
            // With nobody to set it up again, what is advertised ends with the power.
            if adapter.isAbandoned { stopSession(session) } else { interruptSession(session, error) }
        }
        refresh()
    }

    private mutating func resume(_ id: AdapterID) {
        for scan in adapters[id]?.scans.keys.sorted() ?? [] {
            if let mailbox = adapters[id]?.scans[scan]?.mailbox { post(.resumed, to: mailbox) }
        }
        for session in sessionIDs(of: id) { registerSession(session) }
        refresh()
    }

    mutating func forgetPeers(of id: AdapterID) {
        for known in adapters[id]?.known.values ?? [:].values {
            if let timer = known.timer { timeline.remove(timer) }
        }
        adapters[id]?.known = [:]
    }

    // MARK: - Faults and observers

    mutating func inject(_ fault: Fault, _ id: AdapterID) {
        guard let count = adapters[id]?.faults.count, count < Limits.faults else { return }
        adapters[id]?.faults.append(fault)
    }

    mutating func addObserver(
        _ id: AdapterID,
        _ handler: @escaping @Sendable (AdapterObservation) -> Void
    ) -> UInt64 {
        let observer = nextNumber()
        adapters[id]?.observers[observer] = handler
        return observer
    }

    mutating func removeObserver(_ id: AdapterID, _ observer: UInt64) {
        adapters[id]?.observers[observer] = nil
    }

    mutating func observe(_ id: AdapterID, _ observation: AdapterObservation) {
        guard let observers = adapters[id]?.observers, !observers.isEmpty else { return }
        for observer in observers.keys.sorted() {
            if let handler = observers[observer] { effects.append { handler(observation) } }
        }
    }

    /// After any change that can start or stop advertising, or let somebody connect.
    mutating func refresh() {
        refreshAdvertising()
        reconsiderConnects()
    }
}
