// SPDX-License-Identifier: MIT

import BridgeRadio

/// Every bound of the bridge's server. Those of the messages and of the sockets stand in BridgeRadio's own.
enum Limits {
    /// Lines a second from one client, and at once after a rest. Who sends more is read later.
    static let rate = LineRate(perSecond: 2_000, burst: 4_000)
    /// Lines that are no JSON objects, one after another; then the client is cut off.
    static let badLines = 32
    /// Commands of one kind and connection that wait for their turn.
    static let queuedCommands = 256
    /// Links of one client, those that are being made included, and how many may be made at the same time.
    static let links = 16
    static let connects = 8
    /// Sessions (advertisements) of one client.
    static let sessions = 8
    /// Devices that one client's scans have reported, and that it may connect to. The newest are kept.
    static let knownDevices = 1_024
    /// Requests of centrals that wait for one client's answer. A radio gives up on one after 5 s.
    static let requests = 1_024
    /// How long the greeting waits for the adapter's state.
    static let firstStatus: Duration = .seconds(1)
    /// How long a client has to show its token.
    static let admission: Duration = .seconds(10)
    /// How long a token may be, in bytes.
    static let tokenBytes = 1...256
    /// A connect without a timeout of its own.
    static let connect: Duration = .seconds(20)
    /// How long a connect waits for an adapter that is away.
    static let connectWait: Duration = .seconds(10)
    /// A client that sends each command from a thread of its own can overtake itself by this much.
    static let disorder: Duration = .milliseconds(50)
    /// How long what was asked for before may take before a disconnect, or the end of an advertisement, is obeyed.
    static let completion: Duration = .seconds(2)
    /// Without `allowDuplicates` a device that says nothing new is told again after this, with its signal's strength.
    static let repetition: Duration = .seconds(1)
    /// How long the clean-up after all clients may take. BlueZ needs about 2 s for a link.
    static let cleanUp: Duration = .seconds(8)
    /// Events of the bridge itself that are kept for a slow reader.
    static let events = 256
    /// Connections that the system keeps for us to accept.
    static let backlog: Int32 = 64
    /// How long accepting rests when the system has no descriptors left.
    static let acceptPause: Duration = .milliseconds(200)
}
