// SPDX-License-Identifier: MIT

/// The central role: scan, connect, and use a peripheral's GATT services.
///
/// Cancelling the task of a call ends the radio work of that call before it throws `cancelled`.
public protocol Central: RadioAdapter {
    /// Starts a scan that lasts until `Scan.stop()` (or until the scan and its stream are released).
    ///
    /// A scan outlives the adapter's bad moments: when the adapter goes away the scan reports `paused`, and it goes on
    /// by itself once the adapter is back. Only devices heard **during this scan** are reported.
    ///
    /// - Throws: `adapterNotFound`, `poweredOff`, `unauthorized`, `serviceUnavailable`, `limitExceeded`, `cancelled`.
    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan

    /// Connects to a device that a scan of this radio has reported.
    ///
    /// One attempt: retries are the caller's policy. The radio may need the scan to be stopped for it, or running.
    ///
    /// - Parameter timeout: After this the attempt is called off and the call throws `timedOut`.
    /// - Throws: `peerNotFound` (scan again), `connectionFailed`, `timedOut`, `resetting`, `poweredOff`, `busy`,
    ///   `cancelled`.
    func connect(to peer: PeerIdentifier, timeout: Duration) async throws(BluetoothError) -> any PeripheralConnection
}

extension Central {
    /// Scans until a device is heard that is meant, for so long at most.
    ///
    /// - Returns: `nil` if it was not heard. The scan has ended then, too, and where the task was cancelled.
    /// - Throws: As `scan(for:)`.
    package func hear(
        within limit: Duration, _ isMeant: @escaping @Sendable (Discovery) -> Bool
    ) async throws(BluetoothError) -> Discovery? {
        let scan = try await scan(for: ScanFilter())
        let hearing = Task { () -> Discovery? in
            for await case .discovered(let discovery) in scan.events where isMeant(discovery) { return discovery }
            return nil
        }
        let patience = Task { [clock] in
            do { try await clock.sleep(for: limit) } catch { return }
            hearing.cancel()
        }
        let found = await withTaskCancellationHandler {
            await hearing.value
        } onCancel: {
            hearing.cancel()
        }
        patience.cancel()
        // A task of its own: this one may be cancelled, and the radio must be told all the same.
        await Task { await scan.stop() }.value
        return found
    }
}

/// Which devices a scan reports.
public struct ScanFilter: Sendable, Hashable {
    /// Report devices that advertise any of these; empty reports everything.
    public var services: Set<BluetoothUUID>
    /// dBm. Readings below it are left out, and so are reports without a reading, which 127 and every positive value
    /// are too; `nil` reports everything.
    public var minimumRSSI: Int?

    public init(services: Set<BluetoothUUID> = [], minimumRSSI: Int? = nil) {
        self.services = services
        self.minimumRSSI = minimumRSSI
    }
}

/// What a scan tells.
public enum ScanEvent: Sendable, Hashable {
    /// A device was heard, again or for the first time: what is known of it, and this report's RSSI.
    case discovered(Discovery)
    /// The radio has forgotten the device: it was not heard for long, and cannot be connected to.
    case gone(PeerIdentifier)
    /// The adapter or the Bluetooth service is away, or does not let us scan. The scan goes on by itself when it can.
    case paused(BluetoothError)
    /// The scan goes on. Devices have to be heard anew.
    case resumed
}

/// A scan under way.
public struct Scan: Sendable {
    /// For one reader. The newest 256 events are kept for a slow one; ends with the scan.
    public let events: AsyncStream<ScanEvent>
    private let onStop: @Sendable () async -> Void

    /// - Parameter onStop: Ends the scan and returns when the radio has been told; may be called more than once.
    public init(events: AsyncStream<ScanEvent>, onStop: @escaping @Sendable () async -> Void) {
        self.events = events
        self.onStop = onStop
    }

    /// Ends the scan; returns once the radio has been told. Best effort, never throws; a second call does nothing.
    public func stop() async { await onStop() }
}

/// A link to a peripheral, used as its GATT client.
///
/// Every call throws `disconnected` or `notConnected` once the link is down, `resetting` when the Bluetooth service
/// went away, `attributeError` with the ATT code when the peer refuses, `timedOut` after the radio's own limit
/// (ATT transactions: 30 s), `cancelled`.
public protocol PeripheralConnection: AnyObject, Sendable {
    var peer: PeerIdentifier { get }

    /// The ATT MTU in bytes (23 to 517); `nil` where the radio does not tell.
    var attMTU: Int? { get async }

    /// All services and characteristics, once the radio has resolved them.
    ///
    /// - Parameter awaited: A characteristic that the caller needs. If the radio says that everything is resolved and
    ///   it is not there, the call gives it another second to appear, and returns what there is then.
    func discoverServices(awaiting awaited: BluetoothUUID?) async throws(BluetoothError) -> [RemoteService]

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8]

    /// Writes up to 512 bytes; long writes are the radio's business. Writes to one characteristic are queued.
    func write(
        _ value: [UInt8],
        to characteristic: RemoteCharacteristic,
        type: WriteType
    ) async throws(BluetoothError)

    /// Subscribes to notifications, or indications where there are no notifications.
    ///
    /// Returns when the peer has accepted the subscription. A notification that arrives earlier is kept: it is the
    /// stream's first element.
    func subscribe(to characteristic: RemoteCharacteristic) async throws(BluetoothError) -> Subscription

    /// Takes the link down; returns once it is (BlueZ takes about 2 s). A second call waits for the first. The link of a paired
    /// device that was connected before we came is only let go of.
    func disconnect() async

    /// Suspends until the link is down, and says why. Returns at once if it is; returns early with `.local` if the
    /// waiting task is cancelled.
    func disconnection() async -> DisconnectReason
}

extension PeripheralConnection {
    public func discoverServices() async throws(BluetoothError) -> [RemoteService] {
        try await discoverServices(awaiting: nil)
    }
}

public enum WriteType: Sendable, Hashable {
    /// An ATT write request: returns when the peer has acknowledged it.
    case withResponse
    /// An ATT write command: returns when the radio has taken it.
    case withoutResponse
}

/// A subscription to one characteristic. To drop it does not end it: that takes `cancel()`, or the link's end.
public struct Subscription: Sendable {
    /// For one reader. The newest 1,024 values are kept for a slow one; ends with the link or the subscription.
    public let values: AsyncStream<[UInt8]>
    private let onCancel: @Sendable () async -> Void

    public init(values: AsyncStream<[UInt8]>, onCancel: @escaping @Sendable () async -> Void) {
        self.values = values
        self.onCancel = onCancel
    }

    /// Ends the subscription; best effort. Not needed before a disconnect.
    public func cancel() async { await onCancel() }
}

/// Why a link went down, where the radio knows.
public enum DisconnectReason: Sendable, Hashable {
    /// We asked for it.
    case local
    /// The peer did.
    case remote
    /// Nothing was heard of the peer for the supervision time-out.
    case timeout
    /// The adapter was switched off or removed, or the Bluetooth service went away.
    case adapterLost
    /// The radio does not say (BlueZ before 5.83 never does).
    case unknown
}
