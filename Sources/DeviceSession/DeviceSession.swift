// SPDX-License-Identifier: MIT

public import BluetoothLE
public import Observation

/// An ordered conversation with one device: find it, connect, send commands and get their answers.
///
/// ```swift
/// let session = try DeviceSession(profile: .nordicUART, radio: radio)
/// try await session.startScan(ScanRules(namePrefix: "Meter"))
/// for await results in session.scanResultUpdates() where !results.isEmpty { break }
/// try await session.connect(id: session.scanResults[0].id)
/// try await session.waitUntil(.commandReady, timeout: .seconds(10))
/// print(try await session.run("STATUS"))
/// await session.teardown()
/// ```
///
/// All calls may come from any task or thread, at the same time, too. A call that waits ends at once with `cancelled`
/// when its task is cancelled, and the channel can be used all the same. Properties can be read at any time; who reads
/// them inside `withObservationTracking` (as SwiftUI does) is told of changes.
///
/// A session that is released ends by itself, but nobody can wait for that: call `teardown()`.
public final class DeviceSession: Observable, Sendable {
    let core: SessionCore
    let hub = EventHub()
    private let board = SessionBoard()
    private let resultStreams = Broadcast<[ScanResult]>(keeping: 1, readers: Limits.streams)
    private let factStreams = Broadcast<DeviceFacts>(keeping: 1, readers: Limits.streams)
    public let profile: DeviceProfile
    public let configuration: Configuration

    /// - Throws: `invalidArgument` where the profile makes no sense.
    public init(
        profile: DeviceProfile = .nordicUART,
        radio: any Central,
        configuration: Configuration = Configuration()
    ) throws(DeviceSessionError) {
        if let flaw = profile.flaw { throw DeviceSessionError(.invalidArgument, flaw) }
        self.profile = profile
        self.configuration = configuration
        core = SessionCore(
            radio: radio,
            profile: profile,
            configuration: configuration,
            board: board,
            hub: hub,
            resultStreams: resultStreams,
            factStreams: factStreams
        )
    }

    deinit {
        Task { [core] in await core.teardown() }
    }

    // MARK: What there is to see

    public var state: SessionState { board.state }
    /// The profile's characteristics have been found, and notifications are on.
    public var isCommandReady: Bool { board.isCommandReady }
    /// The device facts have been read.
    public var isDeviceInfoReady: Bool { board.isDeviceInfoReady }
    /// What the scan has in view, sorted and filtered; after its end what there was.
    public var scanResults: [ScanResult] { board.scanResults }
    /// Why the scan pauses; `nil`: it does not. It goes on by itself.
    public var scanInterruption: BluetoothError? { board.scanInterruption }
    /// What a lost link waits for before it is tried again: the adapter, and why it cannot be used; `nil`: it does not. It
    /// goes on by itself, and `disconnect()` and `teardown()` end it.
    public var connectInterruption: BluetoothError? { board.connectInterruption }
    /// Each change of `connectInterruption` from now on; the newest one is kept for a slow reader.
    package func connectInterruptionUpdates() -> AsyncStream<BluetoothError?> { board.connectInterruptions.stream() }
    /// What the device says about itself, as far as it has been read.
    public var facts: DeviceFacts { board.facts }
    /// Of the link, once they have been found.
    public var services: [RemoteService] { board.services }
    /// The device of the link as the scan knew it.
    public var device: ScanResult? { board.device }
    public var codecName: String { board.codecName }

    /// The present list, then each change; the newest one is kept for a slow reader. At most 32 streams at a time.
    public func scanResultUpdates() -> AsyncStream<[ScanResult]> {
        resultStreams.stream(startingWith: board.scanResults)
    }

    /// The present facts, then each change, such as a battery level that the device notifies.
    public func factUpdates() -> AsyncStream<DeviceFacts> { factStreams.stream(startingWith: board.facts) }

    // MARK: Finding and connecting

    /// Starts a scan, in place of one that is under way; returns once the radio scans.
    ///
    /// - Throws: `radioUnavailable` (the state is `failed` then), `invalidState` while there is a connection.
    public func startScan(_ rules: ScanRules = ScanRules()) async throws(DeviceSessionError) {
        try await core.startScan(rules)
    }

    /// Ends the scan; returns once the radio has been told. `scanResults` stays as it is.
    public func stopScan() async { await core.stopScan() }

    /// Connects to a device that a scan of the radio has reported, and ends the session's scan for it.
    ///
    /// Returns when there is a link; wait for a gate before you use it.
    ///
    /// - Throws: `peerNotFound`, `connectionFailed`, `timedOut`, `radioUnavailable` (the state is `failed` then),
    ///   `busy` while there is a connection.
    public func connect(id: PeerIdentifier) async throws(DeviceSessionError) { try await core.connect(id) }

    /// Takes the link down, or calls off the attempt; returns once it is down. Pending calls end with `disconnected`.
    /// The session may scan and connect again.
    public func disconnect() async { await core.disconnect() }

    /// Ends the session for good: pending calls end with `tornDown`, streams finish, handlers are released. Returns once
    /// the radio has nothing of it left.
    public func teardown() async { await core.teardown() }

    /// Waits until a gate is open.
    ///
    /// - Throws: `timedOut`; what made the session fail; `disconnected` when `disconnect()` is called meanwhile;
    ///   `channelMissing` or `channelFailed` where `commandReady` will not come about on this link.
    public func waitUntil(_ gate: SessionGate, timeout: Duration) async throws(DeviceSessionError) {
        try await core.wait(for: gate, timeout)
    }

    // MARK: Facts

    /// Reads all facts again. May be called at any time, at the same time as commands.
    @discardableResult
    public func refreshFacts() async throws(DeviceSessionError) -> DeviceFacts { try await core.refreshFacts() }

    /// Reads any characteristic of `services`.
    public func read(_ characteristic: RemoteCharacteristic) async throws(DeviceSessionError) -> [UInt8] {
        try await core.read(characteristic)
    }

    // MARK: Codec

    /// From now on packets are in this code, in both directions. What was half received is dropped.
    public func use(_ codec: any PacketCodec) async throws(DeviceSessionError) { try await core.use(codec) }
}

// MARK: - Events

extension DeviceSession {
    /// A stream of its own for each call, of the events from now on. The newest 256 are kept for a slow reader; it ends
    /// with `teardown()`. At most 32 at a time.
    public var events: AsyncStream<DeviceEvent> { hub.streams.stream() }

    /// Called with each event, in order, one at a time, in the session's own execution: return soon, and start a task
    /// for what takes longer.
    public var onEvent: (@Sendable (DeviceEvent) -> Void)? {
        get { hub.onEvent }
        set { hub.onEvent = newValue }
    }

    /// Like `onEvent`, for some kinds of events, and for up to 64 observers.
    ///
    /// - Throws: `limitExceeded`, `tornDown`.
    public func addObserver(
        of kinds: DeviceEvent.Kinds = .all,
        _ handler: @escaping @Sendable (DeviceEvent) -> Void
    ) throws(DeviceSessionError) -> ObserverToken {
        try hub.add(kinds, handler)
    }

    /// A second call does nothing. An event that is being told at this moment may still reach the observer.
    public func remove(_ token: ObserverToken) { hub.remove(token) }
}
