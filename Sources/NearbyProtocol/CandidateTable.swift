// SPDX-License-Identifier: MIT

/// The devices met in one scan, and what became of each.
struct CandidateTable: Sendable {
    enum Fate: Sendable, Equatable {
        case open
        case otherApp
        case failed
    }

    struct Record: Sendable {
        let peer: PeerID
        var gate: RSSIGate
        let firstSeen: Instant
        /// The order of arrival, by which ties are broken.
        let order: UInt64
        var touched: UInt64
        /// The order in which it last came near.
        var nearOrder: UInt64?
        var isPresent = true
        var wasNear = false
        var attempts = 0
        var pausedUntil: Instant?
        var fate = Fate.open
        var hasFailed = false
        /// Its answer did not come: perhaps notifications of the usual size do not.
        var assumesSmallestNotifications = false
    }

    private var records: [PeerID: Record] = [:]
    private var clock: UInt64 = 0
    /// What devices that had to make room had come to.
    private var evicted = Encounters()
    private let gate: RSSIGate

    init(gate: RSSIGate) {
        self.gate = gate
    }

    var count: Int { records.count }

    subscript(peer: PeerID) -> Record? { records[peer] }

    mutating func update(_ peer: PeerID, _ change: (inout Record) -> Void) {
        guard var record = records[peer] else { return }
        change(&record)
        records[peer] = record
    }

    /// Notes a sighting.
    ///
    /// - Returns: the device if an app's list has to change.
    mutating func sighted(_ peer: PeerID, rssi: Int?, at now: Instant, keeping active: PeerID?) -> Candidate? {
        clock += 1
        var isNews = false
        if records[peer] == nil {
            makeRoom(keeping: active)
            records[peer] = Record(peer: peer, gate: gate, firstSeen: now, order: clock, touched: clock)
            isNews = true
        }
        guard var record = records[peer] else { return nil }
        isNews = isNews || !record.isPresent
        record.isPresent = true
        record.touched = clock
        record.gate.sighted(rssi: rssi, at: now)
        let wasNear = record.nearOrder != nil
        let isNear = judge(&record, at: now)
        records[peer] = record
        guard isNews || isNear != wasNear else { return nil }
        return Candidate(peer: peer, rssi: record.gate.median(at: now), isNear: isNear)
    }

    /// - Returns: whether it was there.
    mutating func gone(_ peer: PeerID) -> Bool {
        guard records[peer]?.isPresent == true else { return false }
        update(peer) {
            $0.isPresent = false
            $0.nearOrder = nil
            $0.gate.gone()
        }
        return true
    }

    mutating func allGone() {
        for peer in records.keys { _ = gone(peer) }
    }

    /// The devices that can be tried now, in the order in which they came near; those tried less often first.
    mutating func eligible(at now: Instant) -> [Record] {
        var found: [Record] = []
        for peer in Array(records.keys) {
            guard var record = records[peer], record.isPresent, record.fate == .open else { continue }
            if let pause = record.pausedUntil, pause > now { continue }
            let isNear = judge(&record, at: now)
            records[peer] = record
            if isNear { found.append(record) }
        }
        return found.sorted { left, right in
            (left.attempts, left.nearOrder ?? 0, left.order) < (right.attempts, right.nearOrder ?? 0, right.order)
        }
    }

    /// When the next pause is over.
    func nextDeadline(after now: Instant) -> Instant? {
        records.values.compactMap { record in
            guard record.isPresent, record.fate == .open else { return nil }
            return record.pausedUntil.flatMap { $0 > now ? $0 : nil }
        }.min()
    }

    var counts: Encounters {
        var counts = evicted
        for record in records.values { counts.add(record) }
        return counts
    }

    private mutating func judge(_ record: inout Record, at now: Instant) -> Bool {
        let isNear = record.gate.isNear(at: now)
        if isNear, record.nearOrder == nil {
            clock += 1
            record.nearOrder = clock
            record.wasNear = true
        } else if !isNear {
            record.nearOrder = nil
        }
        return isNear
    }

    private mutating func makeRoom(keeping active: PeerID?) {
        guard records.count >= ProtocolLimits.devicesSeen else { return }
        let oldest = records.values.filter { $0.peer != active }.min { $0.touched < $1.touched }
        guard let oldest else { return }
        evicted.add(oldest)
        records[oldest.peer] = nil
    }
}

extension Encounters {
    fileprivate mutating func add(_ record: CandidateTable.Record) {
        seen += 1
        switch record.fate {
        case .otherApp: otherApp += 1
        case .failed: failed += 1
        case .open:
            if record.hasFailed {
                failed += 1
            } else if !record.wasNear {
                tooFar += 1
            }
        }
    }
}
