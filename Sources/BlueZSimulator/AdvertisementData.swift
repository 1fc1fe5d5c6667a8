// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// An application's LEAdvertisement1, as bluetoothd reads its properties (the parsers of src/advertising.c).
struct AdvertisementData: Sendable, Hashable {
    var isPeripheral = true
    var serviceUUIDs: [BluetoothUUID] = []
    var serviceData: [BluetoothUUID: [UInt8]] = [:]
    var manufacturerData: [UInt16: [UInt8]] = [:]
    var localName: String?
    var includesTxPower = false
    var discoverable: Bool?
    var timeout: UInt16 = 0
    /// In units of 0.625 ms; 0: not said.
    var minInterval: UInt32 = 0
    var maxInterval: UInt32 = 0
    var hasTxPower = false
    var wantsInstance = false

    /// What bluetoothd reads, and refreshes the advertisement for.
    static let properties: Set = [
        "Type", "Discoverable", "ServiceUUIDs", "SolicitUUIDs", "ManufacturerData", "ServiceData", "Includes",
        "LocalName", "Appearance", "Duration", "Timeout", "DiscoverableTimeout", "MinInterval", "MaxInterval",
        "TxPower",
    ]

    /// - Throws: "Failed to parse advertisement." for the first property that bluetoothd would refuse.
    init(
        parsing properties: [String: DBusValue],
        profile: BehaviourProfile,
        adapterName: String
    ) throws(ErrorReply) {
        hasTxPower = properties["TxPower"] != nil
        wantsInstance = properties["Instance"] != nil
        guard readKind(properties), readData(properties), readNames(properties, adapterName),
            readTimes(properties, profile)
        else { throw .unparsableAdvertisement }
        if !isPeripheral, discoverable == true { throw .unparsableAdvertisement }
        // A MinInterval alone is above the absent MaxInterval, which counts as 0.
        if minInterval > maxInterval { throw .unparsableAdvertisement }
    }

    private mutating func readKind(_ properties: [String: DBusValue]) -> Bool {
        if let value = properties["Type"] {
            switch value.asString {
            case "peripheral": isPeripheral = true
            case "broadcast": isPeripheral = false
            default: return false
            }
        }
        if let value = properties["Discoverable"] {
            guard let flag = value.asBool else { return false }
            discoverable = flag
        }
        return true
    }

    private mutating func readData(_ properties: [String: DBusValue]) -> Bool {
        if let value = properties["ServiceUUIDs"] {
            guard let texts = value.asStrings else { return false }
            for text in texts {
                guard let uuid = BluetoothUUID(text) else { return false }
                if !serviceUUIDs.contains(uuid) { serviceUUIDs.append(uuid) }
            }
        }
        if let value = properties["SolicitUUIDs"] {
            guard let texts = value.asStrings, texts.allSatisfy({ BluetoothUUID($0) != nil }) else { return false }
        }
        if let value = properties["ManufacturerData"] {
            guard let entries = value.asEntries else { return false }
            for entry in entries {
                guard let company = entry.key.asUInt16, let data = entry.value.asBytes else { return false }
                manufacturerData[company] = data
            }
        }
        if let value = properties["ServiceData"] {
            guard let entries = value.asEntries else { return false }
            for entry in entries {
                guard let uuid = entry.key.asString.flatMap(BluetoothUUID.init), let data = entry.value.asBytes
                else { return false }
                serviceData[uuid] = data
            }
        }
        return true
    }

    private mutating func readNames(_ properties: [String: DBusValue], _ adapterName: String) -> Bool {
        var includesName = false
        if let value = properties["Includes"] {
            guard let names = value.asStrings else { return false }
            includesName = names.contains("local-name")
            includesTxPower = names.contains("tx-power")
        }
        if includesName { localName = adapterName }
        if let value = properties["LocalName"] {
            // "Local name already included"
            guard let name = value.asString, !includesName else { return false }
            localName = name.isEmpty ? nil : name
        }
        if let value = properties["Appearance"], value.asUInt16 == nil { return false }
        return true
    }

    private mutating func readTimes(_ properties: [String: DBusValue], _ profile: BehaviourProfile) -> Bool {
        for name in ["Duration", "Timeout", "DiscoverableTimeout"] {
            if let value = properties[name], value.asUInt16 == nil { return false }
        }
        timeout = properties["Timeout"]?.asUInt16 ?? 0
        let discoverableTimeout = discoverable == true ? properties["DiscoverableTimeout"]?.asUInt16 ?? 0 : 0
        if timeout > 0, timeout < discoverableTimeout { return false }
        guard profile.readsAdvertisingInterval else { return true }
        if let value = properties["MinInterval"] {
            guard let units = Self.interval(value) else { return false }
            minInterval = units
        }
        if let value = properties["MaxInterval"] {
            guard let units = Self.interval(value) else { return false }
            maxInterval = units
        }
        if let value = properties["TxPower"] {
            guard let power = value.asInt16, (-127...20).contains(power) else { return false }
        }
        return true
    }

    /// Milliseconds to units of 0.625 ms, within what the specification allows (20 ms to 10,485 s).
    private static func interval(_ value: DBusValue) -> UInt32? {
        guard let milliseconds = value.asUInt32 else { return nil }
        let units = UInt64(milliseconds) * 8 / 5
        return (0x20...0xFFFFFF).contains(units) ? UInt32(units) : nil
    }

    /// Bytes of the advertisement proper, and of the scan response (which takes the name).
    var sizes: (advertisement: Int, scanResponse: Int) {
        let budget = AdvertisementBudget(request)
        return (budget.advertisementBytes + (includesTxPower ? 3 : 0), budget.scanResponseBytes)
    }

    /// Bytes of the longer of the two.
    var longerPart: Int { max(sizes.advertisement, sizes.scanResponse) }

    /// What goes on the air.
    var request: AdvertisementRequest {
        AdvertisementRequest(
            localName: localName,
            serviceUUIDs: serviceUUIDs,
            serviceData: serviceData,
            manufacturerData: manufacturerData,
            interval: maxInterval == 0
                ? nil : .microseconds(Int64(minInterval) * 625) ... .microseconds(Int64(maxInterval) * 625)
        )
    }
}
