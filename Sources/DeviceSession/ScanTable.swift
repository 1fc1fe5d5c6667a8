// SPDX-License-Identifier: MIT

import BluetoothLE

/// What a scan has in view, as data: reports in, a list out.
struct ScanTable {
    struct Row {
        var result: ScanResult
        /// In the order in which the devices came into view.
        var number: Int
        /// When it was last heard, by this side's reckoning.
        var heard: ContinuousClock.Instant
    }

    let rules: ScanRules
    private var rows: [PeerIdentifier: Row] = [:]
    private var lastNumber = 0

    init(_ rules: ScanRules) { self.rules = rules }

    private var patience: Duration { max(rules.staleAfter.bounded, .seconds(1)) }

    mutating func heard(_ discovery: Discovery, at now: ContinuousClock.Instant) {
        let before = rows[discovery.peer]
        // 127 means "not available", and no positive reading is one (contract).
        let reading = discovery.rssi.flatMap { $0 > 0 ? nil : $0 }
        let result = ScanResult(discovery, rssi: reading ?? before?.result.rssi)
        if let before {
            rows[discovery.peer] = Row(result: result, number: before.number, heard: now)
            return
        }
        if rows.count >= Limits.scanResults, let oldest = rows.min(by: { $0.value.heard < $1.value.heard })?.key {
            rows[oldest] = nil
        }
        lastNumber += 1
        rows[discovery.peer] = Row(result: result, number: lastNumber, heard: now)
    }

    mutating func gone(_ peer: PeerIdentifier) { rows[peer] = nil }

    /// Lets those go that were not heard for too long.
    mutating func timerFired(at now: ContinuousClock.Instant) {
        rows = rows.filter { $0.value.heard + patience > now }
    }

    /// When the next one is to go.
    var deadline: ContinuousClock.Instant? { rows.values.map(\.heard).min().map { $0 + patience } }

    func result(of peer: PeerIdentifier) -> ScanResult? { rows[peer]?.result }

    /// Those that the rules show, in their order.
    var results: [ScanResult] {
        rows.values.filter { rules.shows($0.result) }
            .sorted { rules.sorts($0, before: $1) }
            .map(\.result)
    }
}
