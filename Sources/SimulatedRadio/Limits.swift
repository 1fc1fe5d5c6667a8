// SPDX-License-Identifier: MIT

/// The bounds and periods of this module, together.
enum Limits {
    /// Events that a scan keeps for a slow reader, the newest (contract).
    static let scanEvents = 256
    /// Adapter states kept for a slow reader, the newest (contract).
    static let adapterStatuses = 16
    /// Values that a subscription keeps for a slow reader, the newest (contract).
    static let subscriptionValues = 1_024
    /// Events that a peripheral session keeps for a slow reader (contract).
    static let peripheralEvents = 256
    /// Devices that one adapter remembers.
    static let knownPeers = 1_024
    /// Readers of one adapter's states at the same time.
    static let statusReaders = 64
    /// Scans of one adapter at the same time.
    static let scans = 64
    /// Sessions of one adapter at the same time.
    static let sessions = 64
    /// ATT requests queued on one link.
    static let queuedTransactions = 256
    /// Faults that wait for their occasion on one adapter.
    static let faults = 1_024
    /// Services in one session, and characteristics in one service.
    static let services = 64
    static let characteristics = 256
    /// The longest attribute value (Core Specification, Vol 3, Part F, 3.2.9).
    static let attributeValue = 512
    static let attMTU = 23...517
    /// bluetoothd's limit for an answer to ReadValue and WriteValue.
    static let answer = Duration.seconds(5)
    /// How long discovery waits for a characteristic that should be there (contract).
    static let awaitedCharacteristic = Duration.seconds(1)
    /// How long a device that is no longer heard is remembered: BlueZ's `TemporaryTimeout`.
    static let peerMemory = Duration.seconds(30)
    /// How long the kernel keeps a link of ours that nobody uses (HCI_DISCONN_TIMEOUT in Linux's hci.h).
    static let idleLink = Duration.seconds(2)
    /// The advertising interval where none was asked for: BlueZ's default.
    static let defaultInterval = Duration.milliseconds(1_280)
    /// The shortest and the longest legacy advertising interval (Core Specification, Vol 4, Part E, 7.8.5).
    static let interval = Duration.milliseconds(20)...Duration.milliseconds(10_240)
}
