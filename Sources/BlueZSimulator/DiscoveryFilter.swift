// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// One client's SetDiscoveryFilter, and what bluetoothd makes of all of them together.
struct DiscoveryFilter: Sendable, Hashable {
    enum Transport: String { case auto, bredr, le }

    var uuids: Set<BluetoothUUID> = []
    var rssi: Int16?
    var pathloss: UInt16?
    var transport = Transport.auto
    var duplicateData = false
    var discoverable = false
    var pattern: String?

    /// The keys, in the order in which GetDiscoveryFilters lists them.
    static let keys = ["UUIDs", "RSSI", "Pathloss", "Transport", "DuplicateData", "Discoverable", "Pattern"]

    var judgesProximity: Bool { rssi != nil || pathloss != nil }

    /// Reads an `a{sv}`: parse_discovery_filter_dict in BlueZ's src/adapter.c.
    ///
    /// - Returns: nil for an empty dictionary, which clears the client's filter.
    init?(parsing argument: DBusValue, for profile: BehaviourProfile) throws(ErrorReply) {
        guard let entries = argument.asEntries else { throw .invalidArguments }
        guard !entries.isEmpty else { return nil }
        for entry in entries {
            guard let key = entry.key.asString else { throw .invalidArguments }
            if key == "AutoConnect", !profile.filtersByAutoConnect { throw .invalidArguments }
            try read(key, entry.value)
        }
        if rssi != nil, pathloss != nil { throw .invalidArguments }
    }

    init() {}

    private mutating func read(_ key: String, _ value: DBusValue) throws(ErrorReply) {
        switch key {
        case "UUIDs":
            guard let texts = value.asStrings, texts.count <= Limits.filterUUIDs else { throw .invalidArguments }
            for text in texts {
                guard let uuid = BluetoothUUID(text) else { throw .invalidArguments }
                uuids.insert(uuid)
            }
        case "RSSI":
            guard let rssi = value.asInt16, (-127...20).contains(rssi) else { throw .invalidArguments }
            self.rssi = rssi
        case "Pathloss":
            guard let pathloss = value.asUInt16, pathloss <= 137 else { throw .invalidArguments }
            self.pathloss = pathloss
        case "Transport":
            guard let text = value.asString, let transport = Transport(rawValue: text) else { throw .invalidArguments }
            self.transport = transport
        case "DuplicateData":
            guard let flag = value.asBool else { throw .invalidArguments }
            duplicateData = flag
        case "Discoverable":
            guard let flag = value.asBool else { throw .invalidArguments }
            discoverable = flag
        case "Pattern":
            guard let text = value.asString, text.utf8.count <= Limits.patternBytes else { throw .invalidArguments }
            pattern = text
        case "AutoConnect":
            guard value.asBool != nil else { throw .invalidArguments }
        default:
            throw .invalidArguments
        }
    }
}

/// All clients' filters as one, which is what the kernel scans with: merge_discovery_filters in src/adapter.c.
struct MergedDiscoveryFilter: Sendable, Hashable {
    /// Empty: any device.
    var uuids: Set<BluetoothUUID> = []
    /// The lowest threshold of all, if everybody set one.
    var rssi: Int16?
    /// Whether anybody judges nearness; then each reading is signalled, else only changes of 8 dB and more.
    var judgesProximity = false
    var duplicateData = false
    var patterns: [String] = []
    /// Somebody only wants BR/EDR, and nobody LE: nothing is found.
    var excludesLE = false

    /// - Parameter filters: One per client that is discovering; nil: a client without a filter.
    init(_ filters: [DiscoveryFilter?]) {
        let set = filters.compactMap { $0 }
        judgesProximity = set.contains { $0.judgesProximity }
        duplicateData = set.contains { $0.duplicateData }
        patterns = set.compactMap(\.pattern)
        excludesLE = !filters.isEmpty && filters.allSatisfy { $0?.transport == .bredr }
        guard set.count == filters.count else { return }
        if !set.contains(where: { $0.uuids.isEmpty }) {
            uuids = set.reduce(into: []) { $0.formUnion($1.uuids) }
        }
        let thresholds = set.compactMap(\.rssi)
        if thresholds.count == set.count { rssi = thresholds.min() }
    }

    /// Whether a report passes. A reading of 127 ("not available") passes no threshold.
    func admits(_ advertisement: Advertisement, rssi reading: Int, address: BluetoothAddress) -> Bool {
        if excludesLE { return false }
        if !uuids.isEmpty, uuids.isDisjoint(with: advertisement.serviceUUIDs) { return false }
        // The kernel drops what has no reading as soon as there is a threshold, even the lowest (is_filter_match in
        // net/bluetooth/mgmt.c; seen on 5.66).
        if let rssi, reading < Int(rssi) || reading == 127 { return false }
        guard !patterns.isEmpty else { return true }
        return patterns.contains { pattern in
            address.description.lowercased().hasPrefix(pattern.lowercased())
                || advertisement.localName?.hasPrefix(pattern) == true
        }
    }
}
