// SPDX-License-Identifier: MIT

/// What a device says about itself in its advertisements and scan responses, merged over time.
public struct Advertisement: Sendable, Hashable {
    public var localName: String?
    public var serviceUUIDs: Set<BluetoothUUID>
    public var serviceData: [BluetoothUUID: [UInt8]]
    /// By company identifier, as assigned by the Bluetooth SIG.
    public var manufacturerData: [UInt16: [UInt8]]
    /// dBm, as the device claims it.
    public var txPower: Int?

    public init(
        localName: String? = nil,
        serviceUUIDs: Set<BluetoothUUID> = [],
        serviceData: [BluetoothUUID: [UInt8]] = [:],
        manufacturerData: [UInt16: [UInt8]] = [:],
        txPower: Int? = nil
    ) {
        self.localName = localName
        self.serviceUUIDs = serviceUUIDs
        self.serviceData = serviceData
        self.manufacturerData = manufacturerData
        self.txPower = txPower
    }
}

/// One report of one device during a scan.
public struct Discovery: Sendable, Hashable {
    public var peer: PeerIdentifier
    public var address: BluetoothAddress?
    public var advertisement: Advertisement
    /// dBm, just as the radio gave it; `nil` if this report carried none. 127 means "not available" (HCI), and no
    /// positive value is a sensible reading: whoever judges nearness leaves both out.
    public var rssi: Int?
    /// On the radio's clock.
    public var time: ContinuousClock.Instant

    public init(
        peer: PeerIdentifier,
        address: BluetoothAddress? = nil,
        advertisement: Advertisement,
        rssi: Int?,
        time: ContinuousClock.Instant
    ) {
        self.peer = peer
        self.address = address
        self.advertisement = advertisement
        self.rssi = rssi
        self.time = time
    }
}

/// What a peripheral asks its radio to advertise.
public struct AdvertisementRequest: Sendable, Hashable {
    public var localName: String?
    public var serviceUUIDs: [BluetoothUUID]
    public var serviceData: [BluetoothUUID: [UInt8]]
    public var manufacturerData: [UInt16: [UInt8]]
    /// The wish, not a promise: radios that cannot be told advertise at their own pace.
    public var interval: ClosedRange<Duration>?

    public init(
        localName: String? = nil,
        serviceUUIDs: [BluetoothUUID],
        serviceData: [BluetoothUUID: [UInt8]] = [:],
        manufacturerData: [UInt16: [UInt8]] = [:],
        interval: ClosedRange<Duration>? = .milliseconds(100) ... .milliseconds(150)
    ) {
        self.localName = localName
        self.serviceUUIDs = serviceUUIDs
        self.serviceData = serviceData
        self.manufacturerData = manufacturerData
        self.interval = interval
    }
}
