// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// The filter that we give to `SetDiscoveryFilter`: all our scans' wishes, merged.
struct DiscoveryFilter: Sendable, Hashable {
    /// Sorted; empty means any.
    var services: [BluetoothUUID]
    /// dBm. Always given: only with it are changes of less than 8 dB signalled (rule 17).
    var rssi: Int

    /// BlueZ's way to say "no threshold".
    static let anyRSSI = -127

    /// `nil` if there is nothing to look for.
    init?(merging filters: some Collection<ScanFilter>) {
        guard !filters.isEmpty else { return nil }
        let any = filters.contains { $0.services.isEmpty }
        services = any ? [] : filters.reduce(into: Set()) { $0.formUnion($1.services) }.sorted()
        let thresholds = filters.compactMap(\.minimumRSSI)
        rssi = thresholds.count == filters.count ? max(Self.anyRSSI, min(20, thresholds.min() ?? 0)) : Self.anyRSSI
    }

    /// `DuplicateData` stays off: with an RSSI threshold every report is signalled anyway, as a change of `RSSI`
    /// (src/device.c, device_set_rssi_with_delta), and unchanged data need not be repeated.
    ///
    /// - Parameter byService: Whether bluetoothd may be told the services (`Adapter1.filtersByService`).
    func value(byService: Bool) -> DBusValue {
        var pairs: [(String, DBusValue)] = [("Transport", .string("le")), ("RSSI", .int16(Int16(rssi)))]
        if byService, !services.isEmpty { pairs.append(("UUIDs", .strings(services.map(\.longDescription)))) }
        return .variantDictionary(pairs: pairs)
    }
}

/// Our one discovery session at bluetoothd: what it should be, what it is, and the next call towards it.
///
/// One call at a time; nothing while there is no usable adapter.
struct DiscoveryMachine: Sendable {
    enum Call: Sendable, Hashable {
        case setFilter(DiscoveryFilter)
        case start
        case stop
    }

    enum Outcome: Sendable, Hashable {
        case done
        /// `StartDiscovery` answered `InProgress`: either our session runs already, or the kernel still discovers for a
        /// bluetoothd that is gone, and refuses the new one for about 10 s (seen with 5.66 to 5.82; rule 17). Nothing
        /// tells which, so it is asked again until it says yes.
        case heldUp
        case failed
        /// Not in time: it may come about yet.
        case unanswered
    }

    private(set) var wanted: DiscoveryFilter?
    private(set) var isRunning = false
    /// `heldUp` or `unanswered`: the session may be there. It is stopped like one that is.
    private var mayRun = false
    private(set) var applied: DiscoveryFilter?
    private var available = false
    private var inFlight: Call?
    private var blocked = false
    /// `heldUp`s since anything else.
    private var refusals = 0

    /// Whether it was held up for so long that the scans should know.
    var isStuck: Bool { refusals >= Limits.discoverHeldUpTold }

    /// A device was heard: somebody's session runs, and it may be ours.
    mutating func heard() { refusals = 0 }

    /// The scans changed.
    mutating func want(_ filter: DiscoveryFilter?) -> Call? {
        wanted = filter
        blocked = false
        return next()
    }

    /// The adapter is usable, or a pause after a failure is over.
    mutating func adapterReady() -> Call? {
        available = true
        blocked = false
        return next()
    }

    /// The adapter, or bluetoothd, is gone or off: so are our session and our filter.
    mutating func adapterLost() {
        available = false
        isRunning = false
        mayRun = false
        applied = nil
        inFlight = nil
        blocked = false
        refusals = 0
    }

    /// The call last returned was answered.
    mutating func answered(_ call: Call, _ outcome: Outcome) -> Call? {
        guard inFlight == call else { return nil }
        inFlight = nil
        switch (call, outcome) {
        case (.setFilter(let filter), .done): applied = filter
        case (.start, .done):
            isRunning = true
            mayRun = false
            refusals = 0
        case (.start, .heldUp):
            refusals += 1
            mayRun = true
            blocked = wanted != nil
        // Best effort: whatever it answers, we no longer want the session. bluetoothd forgets its filter with it.
        case (.stop, _):
            isRunning = false
            mayRun = false
            applied = nil
        default:
            if call == .start, outcome == .unanswered { mayRun = true }
            blocked = wanted != nil
        }
        return next()
    }

    /// Whether scans get what they want.
    var isSettled: Bool { inFlight == nil && (wanted == nil ? !isRunning && !mayRun : isRunning && applied == wanted) }

    private mutating func next() -> Call? {
        guard available, inFlight == nil, !blocked else { return nil }
        let call: Call?
        if let wanted {
            call = applied != wanted ? .setFilter(wanted) : isRunning ? nil : .start
        } else {
            call = isRunning || mayRun ? .stop : nil
        }
        inFlight = call
        return call
    }
}
