// SPDX-License-Identifier: MIT

/// Every bound of the bridge protocol, and of its client.
package enum BridgeLimits {
    // MARK: Messages

    /// The longest line, its end not counted, in bytes. A GATT database of 64 characteristics is about 16 KiB.
    package static let lineBytes = 65_536
    /// The deepest nesting in a message; the protocol's own need four.
    package static let jsonDepth = 8
    /// Bytes of a name, an id, an address.
    package static let textBytes = 256
    /// Bytes of an error's text.
    package static let errorBytes = 2_048
    /// UUIDs in one list.
    package static let uuids = 64
    /// Other items in one list: properties, permissions.
    package static let listItems = 32
    /// Services of one device.
    package static let services = 64
    /// Characteristics of one device, and of one advertisement.
    package static let characteristics = 256
    /// The longest attribute value (Core Specification, Vol 3, Part F, 3.2.9).
    package static let valueBytes = 512
    /// Advertised by the Mac's bridge and the protocol's file; its first article said 7788.
    package static let port = 7_877
    /// The only version there is.
    package static let protocolVersion = 1
    /// The version of our extension, which a client asks for with `hello`.
    package static let extensionVersion = 1

    // MARK: Sockets

    /// Lines that are read and not yet taken; past it the socket is not read.
    package static let unreadLines = 64
    /// Bytes that wait for a peer who does not read; past it the connection ends.
    package static let unsentBytes = 1_048_576
    /// Past this many waiting bytes, advertisements are left out.
    package static let crowdedBytes = 262_144
    /// How long a closing connection may take to get rid of its last line.
    package static let linger: Duration = .seconds(2)
    /// How long a TCP connection to one address may take to come about.
    package static let tcpConnect: Duration = .seconds(5)
    /// How long it may take to look a name up and to try all its addresses, or to listen there.
    package static let reach: Duration = .seconds(15)
    /// When a peer that says nothing is asked whether it is there, how long after that again, and how often in vain.
    package static let keepAliveIdle: Duration = .seconds(15)
    package static let keepAliveInterval: Duration = .seconds(5)
    package static let keepAliveProbes = 3
    /// How long a peer may take none of what it is sent; then it is taken for gone. Linux gives up one that does not answer
    /// the questions above after that time, too, and not after their number. An app that stands still in a debugger takes
    /// nothing either.
    package static let unacknowledged: Duration = .seconds(60)

    // MARK: The client

    /// How long the bridge has for its greeting.
    package static let greeting: Duration = .seconds(10)
    /// How long the bridge has for any answer but a connect's: an ATT transaction's 30 s, and some.
    package static let answer: Duration = .seconds(45)
    /// How long a bridge may take longer than it was asked to, for a connect.
    package static let connectGrace: Duration = .seconds(5)
    /// How long the connection outlives its last use. BlueZ remembers a device that is not heard as long.
    package static let idle: Duration = .seconds(30)
    /// The ATT MTU of a central where the bridge does not tell it: what Apple's systems agree on by themselves.
    package static let assumedMTU = 185
    /// Pauses between attempts to reach the bridge.
    package static let reconnect: ClosedRange<Duration> = .milliseconds(100) ... .seconds(5)
    /// How long a bridge may take to call a command off.
    package static let cancellation: Duration = .seconds(3)
    /// How long a bridge may take to take a link down. BlueZ needs about 2 s.
    package static let takeDown: Duration = .seconds(10)
    /// Commands that wait for their answer.
    package static let pendingCalls = 1_024
    /// Links that a bridge may tell of, and centrals of one session.
    package static let links = 64
    package static let centrals = 256
    /// Devices that one scan remembers to have reported.
    package static let devices = 1_024
    /// Scan events kept for a slow reader (contract).
    package static let scanEvents = 256
    /// Adapter states kept for a slow reader (contract).
    package static let adapterStatuses = 16
    /// Values kept for a slow reader (contract).
    package static let subscriptionValues = 1_024
    /// Peripheral events kept for a slow reader (contract).
    package static let peripheralEvents = 256
    /// Requests of centrals that wait for the app. A radio gives up on one after 5 s.
    package static let openRequests = 1_024
    /// The longest connect timeout that is passed on.
    package static let connectTimeout: Duration = .seconds(600)
}
