// SPDX-License-Identifier: MIT

/// Every bound of this room. Real bluetoothd has most of them too; where it has none, a hostile client could make the
/// simulator grow, so it has one here.
enum Limits {
    /// D-Bus clients that may have a discovery filter or session on one adapter.
    static let discoveryClients = 64
    /// UUIDs in one discovery filter.
    static let filterUUIDs = 64
    /// Bytes in a discovery filter's pattern.
    static let patternBytes = 248
    /// Devices that one adapter remembers; the one heard of longest ago goes first.
    static let devices = 512
    /// GATT applications registered on one adapter.
    static let applications = 16
    /// Services, characteristics and descriptors of one application.
    static let applicationObjects = 512
    /// Advertisements an adapter holds (BlueZ asks the controller; most say 5 or more).
    static let advertisingInstances: UInt8 = 5
    /// Bytes in an attribute's value (Bluetooth Core Specification, Vol 3, Part F, 3.2.9).
    static let attributeBytes = 512
    /// Bytes in one legacy advertisement, and in one scan response.
    static let legacyAdvertisementBytes = 31
    /// Bytes in an advertisement that extended advertising carries (what BlueZ 5.76 and later falls back to).
    static let extendedAdvertisementBytes = 251
    /// Bytes in an advertisement that an application may announce, too long as it is.
    static let keptAdvertisementBytes = 1_024
    /// Requests of one central that wait for the application. ATT allows one; more would be a broken medium.
    static let pendingRequests = 64
    /// Notification sessions (D-Bus clients) of one remote characteristic.
    static let notifyClients = 64
    /// D-Bus clients that have registered an agent.
    static let agents = 64
    /// Bytes of an alias.
    static let aliasBytes = 248
    /// Adapters of one simulator.
    static let adapters = 16
    /// How long notifications are gathered (src/shared/gatt-server.c, NFY_MULT_TIMEOUT).
    static let gathering: Duration = .milliseconds(10)
    /// Time that bluetoothd gives an application for ReadValue and WriteValue.
    ///
    /// Source: ATT_TIMEOUT in BlueZ's src/shared/gatt-db.c, 5,000 ms.
    static let applicationTimeout: Duration = .seconds(5)
    /// Between Device1.Disconnect and the link's end (DISCONNECT_TIMER in BlueZ's src/device.c).
    static let disconnectDelay: Duration = .seconds(2)
    /// Until a temporary device that nobody hears any more is removed (TemporaryTimeout in BlueZ's main.conf).
    static let temporaryTimeout: Duration = .seconds(30)
    /// Time that an application has to answer during its registration, on the bus's own (real) clock.
    static let registrationTimeout: Duration = .seconds(25)
    /// Until an LE connection attempt fails (the kernel's LE connection time-out).
    static let connectTimeout: Duration = .seconds(20)
}
