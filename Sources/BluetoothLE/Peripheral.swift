// SPDX-License-Identifier: MIT

/// The peripheral role: advertise, and serve GATT to whoever connects.
public protocol Peripheral: RadioAdapter {
    /// Whom a notification reaches.
    var notificationScope: NotificationScope { get }

    /// Serves these services and advertises, until `PeripheralSession.stop()`.
    ///
    /// A session outlives the adapter's bad moments: it reports `interrupted`, registers everything again by itself
    /// when the adapter is back, and reports `serving`.
    ///
    /// - Parameter advertisement: `nil` serves without advertising.
    /// - Throws: `adapterNotFound`, `poweredOff`, `unauthorized`, `serviceUnavailable`, `advertisingFailed` (with what
    ///   was refused and the advice), `invalidArgument`, `limitExceeded`, `cancelled`.
    func serve(
        _ services: [LocalService],
        advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> any PeripheralSession
}

/// Whom a notification reaches.
public enum NotificationScope: Sendable, Hashable {
    /// The central that it is meant for.
    case central
    /// Every central that has subscribed to the characteristic, in every version of BlueZ (bluez/bluez#820).
    case allSubscribers
}

/// Services being served.
public protocol PeripheralSession: AnyObject, Sendable {
    /// For one reader. 256 events are kept for a slow one; a request beyond that is refused with
    /// `insufficientResources`, and no other event is ever dropped before a request is.
    var events: AsyncStream<PeripheralEvent> { get }

    /// Answers a read or write request. Every request wants one answer, within the radio's limit (BlueZ: 5 s); a
    /// second answer, or one after the limit, is ignored.
    func respond(to request: RequestID, with response: RequestResponse) async

    /// Sends one notification of at most 512 bytes.
    ///
    /// What is longer than the peer's ATT MTU less 3 is truncated by BlueZ without a word: the caller checks first.
    ///
    /// - Parameter central: Whom it is meant for; see `NotificationScope` for whom it reaches. `nil`: all subscribers.
    /// - Throws: `notConnected` (nobody is subscribed), `invalidArgument`, `resetting`, `limitExceeded`.
    func notify(
        _ value: [UInt8],
        on characteristic: LocalCharacteristicID,
        to central: PeerIdentifier?
    ) async throws(BluetoothError)

    /// Takes a central's link down, where the radio can; best effort.
    func disconnect(_ central: PeerIdentifier) async

    /// Stops advertising and serving; returns once the radio has been told. A second call does nothing.
    func stop() async
}

/// Names one request of one session.
public struct RequestID: Sendable, Hashable, CustomStringConvertible {
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public var description: String { String(rawValue) }
}

/// An answer to a read or write request.
public enum RequestResponse: Sendable, Hashable {
    /// A write is accepted.
    case accept
    /// A read's value, from the request's offset on. May be longer than fits: the radio sends what does.
    case value([UInt8])
    case refuse(ATTError)
}

/// A central reads one of our characteristics.
public struct ReadRequest: Sendable, Hashable {
    public let id: RequestID
    public let central: PeerIdentifier
    public let characteristic: LocalCharacteristicID
    public let offset: Int
    /// The ATT MTU in bytes as the radio tells it; BlueZ's can overstate (bluez/bluez#65). `nil`: not told.
    public let attMTU: Int?

    public init(
        id: RequestID,
        central: PeerIdentifier,
        characteristic: LocalCharacteristicID,
        offset: Int,
        attMTU: Int?
    ) {
        self.id = id
        self.central = central
        self.characteristic = characteristic
        self.offset = offset
        self.attMTU = attMTU
    }
}

/// A central writes one of our characteristics.
public struct WriteRequest: Sendable, Hashable {
    public let id: RequestID
    public let central: PeerIdentifier
    public let characteristic: LocalCharacteristicID
    public let value: [UInt8]
    /// Where the value goes. BlueZ can give the rest of a long write as a request of its own, at an offset.
    public let offset: Int
    public let attMTU: Int?

    public init(
        id: RequestID,
        central: PeerIdentifier,
        characteristic: LocalCharacteristicID,
        value: [UInt8],
        offset: Int,
        attMTU: Int?
    ) {
        self.id = id
        self.central = central
        self.characteristic = characteristic
        self.value = value
        self.offset = offset
        self.attMTU = attMTU
    }
}

/// What a session tells.
public enum PeripheralEvent: Sendable, Hashable {
    /// Registered; `advertising` says whether centrals can find us, and `degraded` what had to be left out.
    case serving(advertising: Bool, degraded: BluetoothError?)
    /// The adapter or the Bluetooth service went away: all centrals and their subscriptions are gone, and no event need
    /// say so of each. The session comes back by itself.
    case interrupted(BluetoothError)
    case connected(PeerIdentifier)
    case disconnected(PeerIdentifier)
    case read(ReadRequest)
    case write(WriteRequest)
    /// Somebody subscribed; `central` and `attMTU` where the radio knows who (BlueZ: see `bluez.md`, rule 2).
    case subscribed(LocalCharacteristicID, central: PeerIdentifier?, attMTU: Int?)
    /// The central has unsubscribed; `nil`: the last subscriber has.
    case unsubscribed(LocalCharacteristicID, central: PeerIdentifier?)
}
