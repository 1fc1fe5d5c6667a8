// SPDX-License-Identifier: MIT

/// Every bound of this room. Those marked "BlueZ" are bluetoothd's own; the others are ours.
enum Limits {
    /// Devices kept in the object view. The air decides how many there are; beyond this the oldest one that is not
    /// connected is forgotten.
    static let devices = 1024
    /// GATT services, and characteristics, kept in the object view.
    static let attributes = 4096
    /// The same of one device, both together. A host in the air can offer any number.
    static let attributesOfADevice = 512
    /// Adapters kept in the object view.
    static let adapters = 16
    /// Bytes of a name, and UUIDs and data elements of one device, that are kept.
    static let nameBytes = 248
    static let deviceUUIDs = 128
    /// Bytes of a word out of a fixed list, such as a role.
    static let wordBytes = 64
    static let dataElements = 32
    /// Bytes of one service data or manufacturer data element (extended advertising: at most 1650 in all).
    static let dataBytes = 1650
    /// Scans, links, sessions and status streams of one radio.
    static let scans = 32
    static let links = 64
    static let sessions = 8
    static let statusStreams = 64
    /// What the contract promises for its streams.
    static let scanEvents = 256
    static let statusEvents = 16
    static let subscriptionValues = 1_024
    static let sessionRequests = 256
    /// Events of a session in all. The quarter more than `sessionRequests` is for what is not a request.
    static let sessionEvents = 320
    /// Services, and characteristics in each, that a session may serve.
    static let services = 64
    static let characteristics = 64
    /// Requests of one session that wait for their answer.
    static let pendingRequests = 128
    /// Centrals that one session follows. A controller has links for far fewer.
    static let centrals = 256
    /// Local subscribers of one characteristic, and writes that wait for their turn on it.
    static let subscribers = 32
    static let queuedWrites = 64
    /// Value changes held back while a read of the same characteristic is under way.
    static let heldValues = 64
    /// BlueZ, and the specification: bytes of an attribute value.
    static let valueBytes = 512

    /// How long the connection to the bus is kept after its last use: a scan is followed by a connect, and that by
    /// another scan.
    static let linger: Duration = .seconds(5)
    /// BlueZ: bluetoothd gives up a read or write request after 5 s. We answer before it does.
    static let requestAnswer: Duration = .milliseconds(4500)
    /// The ATT transaction time-out is 30 s; after it bluetoothd answers.
    static let attribute: Duration = .seconds(35)
    /// For the calls that bluetoothd answers from memory.
    static let call: Duration = .seconds(15)
    /// For everything that ends something. A stop has to come to its end.
    static let stop: Duration = .seconds(5)
    /// BlueZ's own timer for a disconnect is 2 s.
    static let disconnect: Duration = .seconds(8)
    /// How long after a successful `Connect` the property `Connected` may lag behind.
    static let connectedLag: Duration = .milliseconds(500)
    /// How long after an operation's failure the loss of its link may be told.
    static let lossTold: Duration = .seconds(2)
    /// How long a characteristic may appear after `ServicesResolved` (bluez/bluez#1489).
    static let lateAttribute: Duration = .seconds(1)
    static let servicesResolved: Duration = .seconds(30)
    /// After a central came or went, before advertising again: several that come at once count as one.
    static let advertiseAgain: Duration = .milliseconds(100)
    /// From when bluetoothd has a notification to the next, where it may write past the end of what it gathers for 10 ms.
    static let notifyAgain: Duration = .milliseconds(11)
    /// Pauses between attempts to register what was refused.
    static let registerAgain: ClosedRange<Duration> = .seconds(2) ... .seconds(60)
    /// Pause between attempts to start a discovery that bluetoothd says is in progress.
    static let discoverHeldUp: Duration = .milliseconds(500)
    /// So many refusals in a row, 15 s of them, are more than what a bluetoothd that was killed leaves behind: about 10 s.
    static let discoverHeldUpTold = 30
    /// Pauses between attempts to start a discovery that failed.
    static let discoverAgain: ClosedRange<Duration> = .seconds(1) ... .seconds(30)
    /// Pauses before a bluetoothd that is there, and did not tell what it has, is asked again.
    static let askAgain: ClosedRange<Duration> = .seconds(1) ... .seconds(8)
}
