// SPDX-License-Identifier: MIT

import BluetoothLE

/// A connect that waits for its peer.
struct ConnectRecord {
    let central: AdapterID
    let peripheral: AdapterID
    let promise: Promise<EstablishedLink>
    var timer: MediumState.TimerID?
    /// The link is being set up.
    var isUnderWay = false
}

/// What a central gets.
struct EstablishedLink: Sendable {
    let id: LinkID
    let down: Latch<DisconnectReason>
}

/// A link that is up.
struct LinkRecord {
    let id: LinkID
    let central: AdapterID
    let peripheral: AdapterID
    /// A peer may ask for a larger one at any time, once (Core Specification, Vol 3, Part F, 3.4.2).
    var attMTU: Int
    let down: Latch<DisconnectReason>

    /// ATT requests: the first is under way.
    var transactions: [Transaction] = []
    var discoveries: [OperationID: DiscoveryRecord] = [:]
    /// The characteristics whose notifications the peripheral has been asked for, as it knows it.
    var subscribed: Set<UInt16> = []
    /// The central's readers, by the characteristic's handle.
    var subscriptions: [UInt16: [SubscriptionID: Mailbox<[UInt8]>]] = [:]
    /// Nothing sent later arrives earlier, even if the latency has changed.
    var lastArrival: (toPeripheral: ContinuousClock.Instant, toCentral: ContinuousClock.Instant)
    /// The end by supervision time-out, while the peer is out of reach.
    var supervision: MediumState.TimerID?
    /// The ends whose daemon has been killed, with the link's end.
    var farewells: [AdapterID: MediumState.TimerID] = [:]
    /// Nobody reads what the central sends.
    var isDeaf: Bool { farewells[peripheral] != nil }
}

/// An ATT request of the central with what it waits for.
struct Transaction {
    enum Kind {
        case read(collected: [UInt8], Promise<[UInt8]>)
        case write(value: [UInt8], written: Int, Promise<Void>)
        case subscribe(SubscriptionID, Promise<SubscriptionID>)
        case unsubscribe
    }

    let id: OperationID
    let handle: UInt16
    var kind: Kind
    var isSent = false
    /// Nobody waits any more, but the answer has to come before the next request may go.
    var isCancelled = false
}

struct DiscoveryRecord {
    let awaited: BluetoothUUID?
    let promise: Promise<[RemoteService]>
    var timer: MediumState.TimerID?
    /// Resolved, and waiting for the one that should be there.
    var isAwaiting = false
}

/// A request at the peripheral's app.
struct RequestRecord {
    let link: LinkID
    let session: SessionID
    let handle: UInt16
    /// `nil` for a write without response.
    let transaction: OperationID?
    let isPrepared: Bool
    var timer: MediumState.TimerID?
}
