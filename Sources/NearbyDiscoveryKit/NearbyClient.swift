// SPDX-License-Identifier: MIT

public import BluetoothLE
import NearbyProtocol

/// The client role: finds a host of its app, joins it, and returns what the host hands over.
///
/// ```swift
/// let client = try NearbyClient(NearbyClient.Configuration(appId: "com.example.myapp", minimumRSSI: -60))
/// let handoff = try await client.join()
/// print(handoff.payload["roomCode"] ?? "")
/// await client.finish()
/// ```
public final class NearbyClient: Sendable {
    public let configuration: Configuration
    private let radio: any Central
    private let hub = Broadcast<ClientEvent>(keeping: Limits.events, readers: Limits.eventReaders)
    private let inbox = Inbox<ClientDriver.Input>()
    private let isRunning = Locked(false)
    private let closing = Locked<Task<Void, Never>?>(nil)

    /// - Throws: `invalidConfiguration` for a setting that makes no sense, a passcode that is none among them;
    ///   `payloadTooLarge` for a join request of more than 65,536 bytes, or 508 where only the basic profile is spoken.
    public init(_ configuration: Configuration, radio: any Central) throws(NearbyError) {
        try configuration.check()
        self.configuration = configuration
        self.radio = radio
    }

    /// A client on this system's default radio.
    public convenience init(_ configuration: Configuration) throws(NearbyError) {
        try self.init(configuration, radio: try DefaultRadio.make())
    }

    /// What happens from now on; each call makes a stream of its own, with the newest 128 events for a slow reader.
    /// The streams end when `join` does.
    public func events() -> AsyncStream<ClientEvent> { hub.stream() }

    /// Searches, joins, and returns the handoff as soon as it is there; the link goes down behind the caller's back.
    /// Await `finish()` before the process ends: BlueZ keeps a link whose owner has died.
    ///
    /// - Throws: `nothingFound`, `rejected`, `linkFailed` (with what was met in `encounters`); `securityRequired` if the
    ///   host wants a passcode and there is none (2 s after the first such host was met, so that a person can be asked
    ///   and a new client join with it) or the other way round, nothing having been sent; `wrongPasscode`;
    ///   `adapterNotFound`,
    ///   `poweredOff`, `unauthorized`, `serviceUnavailable` by the configuration's `whenUnavailable`; `cancelled` when
    ///   the task is cancelled: scan and link have ended by then. `invalidConfiguration` if it was called before.
    public func join() async throws(NearbyError) -> Handoff {
        let begins = isRunning.withLock { running in
            defer { running = true }
            return !running
        }
        guard begins else {
            throw NearbyError(
                .invalidConfiguration,
                "this client joins already, or has joined",
                advice: "Make a new NearbyClient for each join."
            )
        }
        defer { hub.finish() }
        let driver = try ClientDriver(configuration: configuration, radio: radio, hub: hub, inbox: inbox)
        let result = await withTaskExecutorPreference(radio.taskExecutor) { await driver.run() }
        let links = driver.closeLinks()
        closing.withLock { $0 = links }
        if case .failure = result { await links.value }
        return try result.get()
    }

    /// Picks a host from the events' `candidates`, where the configuration's selection is `.manual`. A host that is
    /// gone or too far is ignored; so is a second pick while the first is being tried.
    public func choose(_ peer: PeerIdentifier) {
        inbox.post(.chosen(peer))
    }

    /// Waits until the link that `join` used is down; returns at once if there is none. A `join` that throws has waited
    /// for that itself.
    public func finish() async {
        await closing.withLock { $0 }?.value
    }
}

extension NearbyClient.Configuration {
    func check() throws(NearbyError) {
        if let minimumRSSI, !(-127...0).contains(minimumRSSI) {
            throw NearbyError(.invalidConfiguration, "minimumRSSI is \(minimumRSSI), of -127 to 0 dBm")
        }
        if let timeout, timeout <= .zero {
            throw NearbyError(.invalidConfiguration, "timeout is \(timeout), and must be longer than that")
        }
        if case .strongest(let window) = selection, window <= .zero {
            throw NearbyError(.invalidConfiguration, "the window of .strongest is \(window), and must be longer")
        }
        let machineConfiguration = try machineConfiguration()
        do throws(EnvelopeError) { try machineConfiguration.check() } catch {
            throw NearbyError(envelope: error, of: "join request", with: payload)
        }
    }

    func machineConfiguration() throws(NearbyError) -> NearbyProtocol.ClientConfiguration {
        var selection = selection
        if case .strongest(let window) = selection { selection = .strongest(within: window.bounded) }
        return NearbyProtocol.ClientConfiguration(
            appId: appId,
            sessionId: sessionId,
            payload: payload?.object,
            minimumRSSI: minimumRSSI,
            selection: selection,
            deadline: timeout?.bounded,
            // BlueZ tells of changes, and the merged filters of other programs can make those few.
            reportsEveryAdvertisement: false,
            profiles: try profiles()
        )
    }

    /// What a device must have for this client. Hosts of the extended profile have the message characteristic too.
    var awaitedCharacteristic: BluetoothUUID {
        profile == .extended || security.hasPasscode ? ServiceUUIDs.channel : ServiceUUIDs.message
    }
}
