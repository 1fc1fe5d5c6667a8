// SPDX-License-Identifier: MIT

public import BluetoothLE

/// A device that a scan has in view.
public struct ScanResult: Sendable, Hashable, Identifiable {
    public let id: PeerIdentifier
    /// What to show: the advertised name, else the address, else the radio's own name. The name is a stranger's text.
    public var displayName: String
    /// The name that the device advertises, if it does.
    public var name: String?
    /// The device's address where the radio tells it. Many devices change it every few minutes.
    public var address: BluetoothAddress?
    /// dBm, the newest reading; `nil` before there was one.
    public var rssi: Int?
    public var lastSeen: ContinuousClock.Instant
    public var advertisement: Advertisement

    init(_ discovery: Discovery, rssi: Int?) {
        id = discovery.peer
        name = discovery.advertisement.localName.flatMap { $0.isEmpty ? nil : $0 }
        displayName = name ?? discovery.address?.description ?? discovery.peer.rawValue
        address = discovery.address
        self.rssi = rssi
        lastSeen = discovery.time
        advertisement = discovery.advertisement
    }
}

/// Which devices a session's scan shows, in which order, and for how long.
public struct ScanRules: Sendable, Hashable {
    public enum Order: Sendable, Hashable {
        case strongestFirst
        /// By display name, without regard to case; the strongest of one name first.
        case byName
        /// As they were first heard: no device moves while somebody reaches for it.
        case firstSeenFirst
    }

    /// Devices whose name begins with it, in the case given; `nil`: any, and those without a name.
    public var namePrefix: String?
    /// dBm; devices whose newest reading is weaker, or that have none, are left out. `nil`: all are shown.
    public var minimumRSSI: Int?
    /// Devices that advertise any of these; empty: all.
    public var services: Set<BluetoothUUID>
    /// Only the device with this address: its own, or one that it carries in its manufacturer data (as modules do whose
    /// address a phone would never tell), in either byte order.
    public var address: BluetoothAddress?
    public var order: Order
    /// A device that was not heard for so long leaves; at least a second.
    public var staleAfter: Duration

    public init(
        namePrefix: String? = nil,
        minimumRSSI: Int? = nil,
        services: Set<BluetoothUUID> = [],
        address: BluetoothAddress? = nil,
        order: Order = .strongestFirst,
        staleAfter: Duration = .seconds(10)
    ) {
        self.namePrefix = namePrefix
        self.minimumRSSI = minimumRSSI
        self.services = services
        self.address = address
        self.order = order
        self.staleAfter = staleAfter
    }

    func shows(_ result: ScanResult) -> Bool {
        if let namePrefix, !namePrefix.isEmpty, result.name?.hasPrefix(namePrefix) != true { return false }
        if let minimumRSSI, result.rssi.map({ $0 < minimumRSSI }) ?? true { return false }
        if !services.isEmpty, services.isDisjoint(with: result.advertisement.serviceUUIDs) { return false }
        if let address, !Self.carries(result, address) { return false }
        return true
    }

    private static func carries(_ result: ScanResult, _ address: BluetoothAddress) -> Bool {
        if result.address?.rawValue == address.rawValue { return true }
        let shifts = stride(from: 40 as UInt64, through: 0, by: -8)
        let octets = shifts.map { UInt8(truncatingIfNeeded: address.rawValue >> $0) }
        let reversed = Array(octets.reversed())
        return result.advertisement.manufacturerData.contains { company, data in
            // A module that puts its address right behind the length has two octets of it read as the company's number.
            let whole = [UInt8(truncatingIfNeeded: company), UInt8(truncatingIfNeeded: company >> 8)] + data
            return whole.contains(octets) || whole.contains(reversed)
        }
    }

    func sorts(_ left: ScanTable.Row, before right: ScanTable.Row) -> Bool {
        switch order {
        case .firstSeenFirst:
            return left.number < right.number
        case .strongestFirst:
            let (one, other) = (left.result.rssi ?? .min, right.result.rssi ?? .min)
            return one == other ? left.number < right.number : one > other
        case .byName:
            let (one, other) = (left.result.displayName.lowercased(), right.result.displayName.lowercased())
            if one != other { return one < other }
            let (near, far) = (left.result.rssi ?? .min, right.result.rssi ?? .min)
            return near == far ? left.number < right.number : near > far
        }
    }
}
