// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus
internal import SimulatedRadio

/// org.bluez.Device1: one remote device, found, connected or remembered.
///
/// Source: src/device.c of BlueZ, doc/org.bluez.Device.rst.
@BlueZSimulatorActor
final class Device1: BusInterface {
    let address: BluetoothAddress
    let path: ObjectPath
    /// Owning, as its services own it: `discard` and the adapter, which forgets its devices, undo the cycles.
    let adapter: Adapter
    private(set) var advertised = Advertisement()
    private var flags: UInt8?
    private(set) var rssi: Int16?
    private var alias: String?
    private var isTrusted = false
    private var isBlocked = false
    /// Removed when nobody has heard of it for a while.
    var isTemporary = true
    private var temporaryTimer: Task<Void, Never>?
    /// As the clock of the adapter counts; the least goes first when there are too many devices.
    private(set) var lastHeard: ContinuousClock.Instant

    var services: [GattService1] = []
    var isConnected = false
    var servicesResolved = false
    /// Once bluetoothd has looked, what is advertised changes `UUIDs` no more (src/device.c, device_add_eir_uuids).
    var remembersServices = false
    /// Our link to it, if we are its central.
    var connection: (any PeripheralConnection)?
    /// Its link to us, if it is ours.
    var central: CentralID?
    /// A link of the daemon before, which was killed, in either role.
    var leftover: LinkInfo?
    var hasLink: Bool { connection != nil || central != nil || leftover != nil }
    var pendingConnect: ConnectAttempt?
    /// Applications that wait for Disconnect (or RemoveDevice), and the time until the link is taken down.
    var pendingDisconnects: [(call: MethodCall, removes: Bool)] = []
    var disconnectTimer: Task<Void, Never>?

    nonisolated let declaration: ExportedInterface

    init(address: BluetoothAddress, path: ObjectPath, adapter: Adapter) {
        self.address = address
        self.path = path
        self.adapter = adapter
        lastHeard = adapter.timers.clock.now
        declaration = Self.declare(adapter.profile)
    }

    /// A resolvable or non-resolvable private address: BlueZ keeps such devices only as temporary ones.
    var hasPrivateAddress: Bool { address.kind == .random && address.rawValue >> 46 != 0b11 }

    // MARK: Advertising reports

    /// Takes a report in; returns the names of the properties to signal.
    func take(_ report: AirReport, filter: MergedDiscoveryFilter) -> [String] {
        heard()
        var changed: [String] = []
        if updateRSSI(report.rssi, anyChange: filter.judgesProximity) { changed.append("RSSI") }
        let new = report.advertisement
        if let power = new.txPower, power != advertised.txPower {
            advertised.txPower = power
            changed.append("TxPower")
        }
        if let name = new.localName, name != advertised.localName {
            advertised.localName = name
            changed += alias == nil ? ["Name", "Alias"] : ["Name"]
        }
        if !remembersServices, !new.serviceUUIDs.isSubset(of: advertised.serviceUUIDs) {
            advertised.serviceUUIDs.formUnion(new.serviceUUIDs)
            changed.append("UUIDs")
        }
        if merge(new.manufacturerData, into: &advertised.manufacturerData, always: filter.duplicateData) {
            changed.append("ManufacturerData")
        }
        if merge(new.serviceData, into: &advertised.serviceData, always: filter.duplicateData) {
            changed.append("ServiceData")
        }
        if let reported = report.flags, reported != flags {
            flags = reported
            changed.append("AdvertisingFlags")
        }
        return changed
    }

    private func merge<Key>(_ new: [Key: [UInt8]], into old: inout [Key: [UInt8]], always: Bool) -> Bool {
        guard !new.isEmpty else { return false }
        let merged = old.merging(new) { $1 }
        defer { old = merged }
        return always || merged != old
    }

    /// Changes under 8 dB are kept back unless some client judges nearness (RSSI_THRESHOLD in src/device.c). What is
    /// kept back is not stored either, so small steps add up to a signal.
    private func updateRSSI(_ reading: Int, anyChange: Bool) -> Bool {
        let new = Int16(clamping: reading)
        if let rssi, new != 0 {
            let delta = abs(Int(rssi) - Int(new))
            if delta < (anyChange ? 0 : 8) { return false }
        }
        rssi = new == 0 ? nil : new
        return true
    }

    /// The scan has ended: what it measured is no longer valid.
    func invalidateReadings() {
        var changed: [String] = []
        if rssi != nil { changed.append("RSSI") }
        if advertised.txPower != nil { changed.append("TxPower") }
        rssi = nil
        advertised.txPower = nil
        signal(changed)
    }

    // MARK: Temporary devices

    /// Starts the temporary timer anew: 30 s without a sign of life remove the device.
    func heard() {
        lastHeard = adapter.timers.clock.now
        stopTemporaryTimer()
        guard isTemporary, !isConnected else { return }
        temporaryTimer = adapter.timers.after(Limits.temporaryTimeout) { [weak self] in
            guard let self, self.isTemporary, !self.isConnected else { return }
            self.adapter.remove(self)
        }
    }

    func stopTemporaryTimer() {
        temporaryTimer?.cancel()
        temporaryTimer = nil
    }

    /// The device's object is going away: whoever waits for it hears so. A daemon that is killed tells nobody, its peers
    /// neither.
    func discard(_ end: DaemonEnd) {
        stopTemporaryTimer()
        disconnectTimer?.cancel()
        // Nobody answers a Connect whose device is removed (device_free in src/device.c).
        if let attempt = endAttempt() { adapter.presence.leaveUnanswered(attempt.call) }
        for pending in pendingDisconnects { pending.call.reply() }
        pendingDisconnects = []
        if let connection, end == .stopped { Task { await connection.disconnect() } }
        connection = nil
        removeServices()
    }

    func signal(_ names: [String]) {
        adapter.presence.changed(self, at: path, names)
    }

    // MARK: BusInterface

    func handle(_ call: MethodCall) {
        switch call.member {
        case "Connect": connect(call)
        case "Disconnect": disconnect(call)
        case "Pair": call.fail(ErrorReply("AuthenticationFailed", "Authentication Failed"))
        case "CancelPairing": call.fail(.doesNotExist)
        default: call.fail(.notSupported)
        }
    }

    func property(_ name: String) -> DBusValue? {
        switch name {
        case "Address": .string(address.description)
        case "AddressType": .string(address.kind.rawValue)
        case "Name": advertised.localName.map { .string($0) }
        case "Alias": .string(displayName)
        case "Paired", "Bonded", "LegacyPairing": .bool(false)
        case "Trusted": .bool(isTrusted)
        case "Blocked": .bool(isBlocked)
        case "Connected": .bool(isConnected)
        case "ServicesResolved": .bool(servicesResolved)
        case "RSSI": rssi.map { .int16($0) }
        case "TxPower": advertised.txPower.map { .int16(Int16(clamping: $0)) }
        case "UUIDs": .strings(uuids.map(\.longDescription))
        case "Adapter": .objectPath(adapter.path)
        case "ManufacturerData": manufacturerData
        case "ServiceData": serviceData
        case "AdvertisingFlags": flags.map { .bytes([$0]) }
        default: nil
        }
    }

    func setProperty(_ name: String, to value: DBusValue) -> ErrorReply? {
        switch name {
        case "Trusted": isTrusted = value.asBool ?? isTrusted
        case "Blocked":
            isBlocked = value.asBool ?? isBlocked
            if isBlocked { adapter.endLink(self) }
        case "Alias":
            guard let text = value.asString, text.utf8.count <= Limits.aliasBytes else { return .invalidArguments }
            alias = text.isEmpty ? nil : text
        default: return .invalidArguments
        }
        signal([name])
        return nil
    }

    private var displayName: String {
        alias ?? advertised.localName ?? String(address.description.map { $0 == ":" ? "-" : $0 })
    }

    private var uuids: [BluetoothUUID] {
        // One or the other, and the services for good (src/device.c, dev_property_get_uuids).
        (remembersServices ? Set(services.map(\.uuid)) : advertised.serviceUUIDs).sorted()
    }

    private var manufacturerData: DBusValue? {
        guard !advertised.manufacturerData.isEmpty else { return nil }
        let entries = advertised.manufacturerData.sorted { $0.key < $1.key }
            .map { DBusEntry(.uint16($0.key), .variant(.bytes($0.value))) }
        return .dictionary(key: "q", value: .variant, entries)
    }

    private var serviceData: DBusValue? {
        guard !advertised.serviceData.isEmpty else { return nil }
        return .variantDictionary(
            pairs: advertised.serviceData.sorted { $0.key < $1.key }.map { ($0.key.longDescription, .bytes($0.value)) })
    }

    private nonisolated static func declare(_ profile: BehaviourProfile) -> ExportedInterface {
        var properties: [ExportedInterface.Property] = [
            .init("Address", "s"), .init("AddressType", "s"), .init("Name", "s"),
            .init("Alias", "s", access: .readWrite), .init("Paired", "b"),
            .init("Trusted", "b", access: .readWrite), .init("Blocked", "b", access: .readWrite),
            .init("LegacyPairing", "b"), .init("RSSI", "n"), .init("Connected", "b"), .init("UUIDs", "as"),
            .init("Adapter", "o"), .init("ManufacturerData", "a{qv}"), .init("ServiceData", "a{sv}"),
            .init("TxPower", "n"), .init("ServicesResolved", "b"), .init("AdvertisingFlags", "ay"),
        ]
        if profile.hasBonded { properties.append(.init("Bonded", "b")) }
        return ExportedInterface(
            "org.bluez.Device1",
            methods: [
                .init("Disconnect"), .init("Connect"), .init("ConnectProfile", "s"), .init("DisconnectProfile", "s"),
                .init("Pair"), .init("CancelPairing"),
            ],
            signals: profile.hasDisconnectedSignal ? [.init("Disconnected", "ss")] : [],
            properties: properties
        )
    }
}
