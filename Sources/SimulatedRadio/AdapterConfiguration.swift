// SPDX-License-Identifier: MIT

public import BluetoothLE

/// What one simulated adapter and its stack can do. The default is a current BlueZ on a good controller.
public struct AdapterConfiguration: Sendable, Hashable {
    /// How a write that is longer than one PDU reaches the peripheral's app.
    public enum LongWrites: Sendable, Hashable {
        /// As one request with the whole value.
        case whole
        /// As one request with this many bytes, and if that was accepted another with the rest at its offset.
        /// Reported of BlueZ 5.66, at 504 of 512 bytes at MTU 23; the 5.66 of our lab refuses the rest instead.
        case split(at: Int)
    }

    /// The ATT MTU that the adapter offers, 23 to 517. A link has the lesser of both ends'.
    public var maximumMTU: Int
    /// Whether the radio tells its ATT MTU to the app, as BlueZ does from 5.62 on.
    public var tellsMTU: Bool
    public var notificationScope: NotificationScope
    public var longWrites: LongWrites
    /// The longest value, in bytes, that the stack takes for a write, as a peripheral. 510 from BlueZ 5.56 to 5.68
    /// (bluez/bluez#570).
    public var longestWrite: Int
    /// The same of a write that takes more than one PDU. 508 from BlueZ 5.56 to 5.68.
    public var longestPreparedWrite: Int
    /// Some controllers stop advertising while a central is connected.
    public var pausesAdvertisingWhileConnected: Bool
    /// Advertisements at the same time; one more is refused with `advertisingFailed`.
    public var maximumAdvertisements: Int
    /// Centrals connected at the same time; while there are as many, nobody else gets a link.
    public var maximumCentrals: Int
    /// Peripherals connected at the same time; one more fails with `connectionFailed`.
    public var maximumPeripherals: Int
    /// Whether somebody else's connect comes through.
    public var acceptsConnections: Bool

    public init(
        maximumMTU: Int = 517,
        tellsMTU: Bool = true,
        notificationScope: NotificationScope = .allSubscribers,
        longWrites: LongWrites = .whole,
        longestWrite: Int = 512,
        longestPreparedWrite: Int = 512,
        pausesAdvertisingWhileConnected: Bool = false,
        maximumAdvertisements: Int = 4,
        maximumCentrals: Int = 64,
        maximumPeripherals: Int = 64,
        acceptsConnections: Bool = true
    ) {
        self.maximumMTU = maximumMTU
        self.tellsMTU = tellsMTU
        self.notificationScope = notificationScope
        self.longWrites = longWrites
        self.longestWrite = longestWrite
        self.longestPreparedWrite = longestPreparedWrite
        self.pausesAdvertisingWhileConnected = pausesAdvertisingWhileConnected
        self.maximumAdvertisements = maximumAdvertisements
        self.maximumCentrals = maximumCentrals
        self.maximumPeripherals = maximumPeripherals
        self.acceptsConnections = acceptsConnections
    }
}
