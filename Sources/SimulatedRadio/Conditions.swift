// SPDX-License-Identifier: MIT

/// What the air is like, for all adapters of a medium. May be changed at any time.
public struct Conditions: Sendable, Hashable {
    /// dBm, for pairs that have no RSSI of their own. 127 is reported as it is; `nil` reports without a reading.
    public var rssi: Int?
    /// The time from one end of a link to the other, for each PDU. Zero: the whole GATT traffic takes no time at all.
    public var latency: Duration
    /// From the start of `connect` to the link, if the peer is there.
    public var connectionTime: Duration
    /// What service discovery takes.
    public var discoveryTime: Duration
    /// The probability, 0 to 1, that one scanner misses one advertisement.
    public var advertisementLoss: Double
    /// Each advertising event comes up to this much late, at random (on the air: up to 10 ms).
    public var advertisingJitter: Duration
    /// How long a link survives a peer that went out of range or was unplugged.
    public var supervisionTimeout: Duration

    public init(
        rssi: Int? = -50,
        latency: Duration = .zero,
        connectionTime: Duration = .zero,
        discoveryTime: Duration = .zero,
        advertisementLoss: Double = 0,
        advertisingJitter: Duration = .zero,
        supervisionTimeout: Duration = .seconds(4)
    ) {
        self.rssi = rssi
        self.latency = latency
        self.connectionTime = connectionTime
        self.discoveryTime = discoveryTime
        self.advertisementLoss = advertisementLoss
        self.advertisingJitter = advertisingJitter
        self.supervisionTimeout = supervisionTimeout
    }
}
