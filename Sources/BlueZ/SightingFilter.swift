// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// What one scan reports, judged by our own rules: bluetoothd merges the filters of all its clients (rule 17), and lists
/// devices that it only remembers (rule 18).
struct SightingFilter: Sendable {
    let filter: ScanFilter
    /// Devices heard during this scan, and the newest reading that was not reported yet.
    private var heard: [ObjectPath: Int?] = [:]
    private(set) var reported: Set<ObjectPath> = []

    init(_ filter: ScanFilter) { self.filter = filter }

    /// A device's properties changed.
    ///
    /// - Parameter isFiltered: Whether bluetoothd tells only of what advertises one of the services that are looked for.
    /// - Returns: What to report: `nil` for nothing, else the reading that goes with it.
    mutating func judge(
        _ path: ObjectPath, _ device: Device1, _ change: Device1.Change, isFiltered: Bool = false
    ) -> Report? {
        if change.contains(.heard) {
            guard heard[path] != nil || heard.count < Limits.devices else { return nil }
            let before = heard[path] ?? nil
            heard[path] = .some(change.contains(.rssi) ? device.rssi : before)
        } else if !change.contains(.advertisement) {
            return nil
        }
        // Not a paired one: if we should be wrong, those are the devices of whoever sits here.
        let isRemembered = isFiltered && change.contains(.heard) && device.remembersServices && !device.paired
        guard let waiting = heard[path], isRemembered || matches(device) else { return nil }
        let reading = change.contains(.rssi) ? device.rssi : waiting
        if let minimum = filter.minimumRSSI {
            // 127 and positive values are no readings.
            guard let reading, reading <= 0, reading >= minimum else { return nil }
        }
        heard[path] = .some(nil)
        reported.insert(path)
        return Report(rssi: reading, service: isRemembered && filter.services.count == 1 ? filter.services.first : nil)
    }

    /// - Returns: Whether to report a device that is connected as the scan begins, for what it is known to have: it must
    ///   have a service that was asked for, and no reading is wanted, for there is none.
    mutating func admitsConnected(_ path: ObjectPath, _ device: Device1) -> Bool {
        guard filter.minimumRSSI == nil, !filter.services.isEmpty, matches(device) else { return false }
        heard[path] = .some(nil)
        reported.insert(path)
        return true
    }

    struct Report: Sendable, Hashable {
        var rssi: Int?
        /// What the device advertises though its object does not say so.
        var service: BluetoothUUID?
    }

    /// - Returns: Whether the scan has told of the device, so that it has to take it back.
    mutating func forget(_ path: ObjectPath) -> Bool {
        heard[path] = nil
        return reported.remove(path) != nil
    }

    /// Devices have to be heard anew.
    mutating func reset() {
        heard = [:]
        reported = []
    }

    private func matches(_ device: Device1) -> Bool {
        filter.services.isEmpty || !filter.services.isDisjoint(with: device.advertisement.serviceUUIDs)
    }
}
