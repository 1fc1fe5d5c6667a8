// SPDX-License-Identifier: MIT

public import BluetoothLE

/// The Bluetooth of another machine, through a bridge that speaks BLEForEmulator's protocol.
///
/// With `nearby bridge`, or an `EmulatorBridge` of one's own, the contract holds in full: both sides speak an extension
/// of the protocol. With a bridge that knows the protocol alone, as a Mac's, what it does not tell is missing: requests
/// are accepted before the app is asked, reads of served characteristics never arrive, and failed reads and writes
/// time out.
///
/// The TCP connection exists while the radio is used, and half a minute longer; when it is lost, it is made anew, and
/// scans and sessions go on by themselves.
public final class BridgeRadio: Radio {
    public let endpoint: BridgeEndpoint
    private let core: BridgeCore

    /// - Parameter token: What the bridge wants to be shown, if it does. It travels in the clear.
    public init(_ endpoint: BridgeEndpoint, token: String? = nil) {
        self.endpoint = endpoint
        core = BridgeCore(endpoint, token: token)
    }

    deinit {
        let core = core
        Task { await core.abandon() }
    }

    public var clock: any MonotonicClock { ContinuousClock() }

    public func adapterStatuses() -> AsyncStream<AdapterStatus> {
        let core = core
        let (stream, continuation) = AsyncStream.makeStream(
            of: AdapterStatus.self, bufferingPolicy: .bufferingNewest(BridgeLimits.adapterStatuses))
        let id = core.newNumber()
        continuation.onTermination = { _ in Task { await core.removeStatusReader(id) } }
        Task { await core.addStatusReader(id, continuation) }
        return stream
    }

    public func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan {
        if Task.isCancelled { throw .cancelled }
        let core = core
        let (stream, continuation) = AsyncStream.makeStream(
            of: ScanEvent.self, bufferingPolicy: .bufferingNewest(BridgeLimits.scanEvents))
        let id = core.newNumber()
        continuation.onTermination = { _ in Task { await core.stopScans([id]) } }
        try await core.startScan(id, filter, continuation)
        return Scan(events: stream) { await core.stopScans([id]) }
    }

    public func connect(
        to peer: PeerIdentifier,
        timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        if Task.isCancelled { throw .cancelled }
        return try await core.connect(to: peer, timeout: timeout)
    }

    public var notificationScope: NotificationScope { core.notificationScope }

    public func serve(
        _ services: [LocalService],
        advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> any PeripheralSession {
        if Task.isCancelled { throw .cancelled }
        return try await core.serve(services, advertising: advertisement)
    }

    /// Ends all that the radio does, and the connection to the bridge.
    public func shutdown() async { await core.shutDown() }
}
