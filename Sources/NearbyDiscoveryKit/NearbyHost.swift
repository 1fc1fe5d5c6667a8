// SPDX-License-Identifier: MIT

public import BluetoothLE
import NearbyProtocol

/// The host role: advertises the service, and answers each client that asks to join.
///
/// ```swift
/// let host = try NearbyHost(NearbyHost.Configuration(appId: "com.example.myapp"))
/// try await host.run { request in .handoff(["roomCode": "SWIFT42"]) }
/// ```
///
/// `run` serves until its task is cancelled, through restarts of the Bluetooth service and of the adapter.
///
/// What protects a handoff: with a passcode the exchange is sealed and authenticated, and basic clients are refused.
/// Without one it is sealed, unauthenticated, for clients of ours, and public for basic ones: plain text on the air, and
/// BlueZ notifies every subscribed central. See `docs/security.md`.
public final class NearbyHost: Sendable {
    public let configuration: Configuration
    /// Facts worth telling whoever set the host up: an envelope that not every phone can take, values that today's
    /// mobile peers do not read. In sentences.
    public let notices: [String]
    private let radio: any Peripheral
    private let hub = Broadcast<HostEvent>(keeping: Limits.events, readers: Limits.eventReaders)
    private let inbox = Inbox<HostDriver.Input>()
    private let isRunning = Locked(false)

    /// - Throws: `invalidConfiguration` for a setting that makes no sense, a passcode that is none and basic beside a
    ///   passcode among them; `payloadTooLarge`, with the number of bytes over, for a payload that fits no profile.
    public init(_ configuration: Configuration, radio: any Peripheral) throws(NearbyError) {
        self.notices = try configuration.check()
        self.configuration = configuration
        self.radio = radio
    }

    /// A host on this system's default radio.
    public convenience init(_ configuration: Configuration) throws(NearbyError) {
        try self.init(configuration, radio: try DefaultRadio.make())
    }

    /// What happens from now on; each call makes a stream of its own, with the newest 128 events for a slow reader.
    /// The streams end when `run` does.
    public func events() -> AsyncStream<HostEvent> { hub.stream() }

    /// Serves, and hands the configuration's payload to every client.
    public func run() async throws(NearbyError) {
        try await serve(admit: nil)
    }

    /// Serves, and asks the app about each client.
    ///
    /// - Parameter admit: Decides on one request, within 10 s (the client gets `timeout` after that, and the
    ///   closure's task is cancelled). Called for several clients at a time.
    /// - Returns: after `maximumHandoffs` deliveries, if there is such a limit.
    /// - Throws: `cancelled` when the task is cancelled; the radio work has ended by then. `adapterNotFound`,
    ///   `poweredOff`, `unauthorized`, `serviceUnavailable` by the configuration's `whenUnavailable`, the last also at once
    ///   where the radio has no room or is busy; `advertisingFailed`; `invalidConfiguration` if the host runs already.
    public func run(_ admit: @escaping @Sendable (JoinRequest) async -> Admission) async throws(NearbyError) {
        try await serve(admit: admit)
    }

    private func serve(admit: (@Sendable (JoinRequest) async -> Admission)?) async throws(NearbyError) {
        let begins = isRunning.withLock { running in
            defer { running = true }
            return !running
        }
        guard begins else {
            throw NearbyError(
                .invalidConfiguration,
                "this host runs already, or has run",
                advice: "Make a new NearbyHost for each run."
            )
        }
        defer { hub.finish() }
        let driver = try HostDriver(configuration: configuration, radio: radio, hub: hub, inbox: inbox, admit: admit)
        try await withTaskExecutorPreference(radio.taskExecutor) { () async throws(NearbyError) in
            try await driver.run()
        }
    }

    /// Asks for another passcode from now on, as after `underAttack`. Does nothing on a host without one.
    ///
    /// Who has read the host's hello before has to read it again, which our clients do by themselves. Exchanges that have
    /// proved the old passcode go on.
    public func changePasscode(to passcode: Passcode) {
        guard configuration.security.hasPasscode else { return }
        inbox.post(.passcodeChanged(passcode))
    }
}

extension NearbyHost.Configuration {
    /// Checks everything that can be checked before there is a radio.
    ///
    /// - Returns: the notices.
    func check() throws(NearbyError) -> [String] {
        let hasReservedKeys = payload.object.hasReservedKeys
        guard !hasReservedKeys else {
            throw NearbyError(
                .invalidConfiguration,
                "keys that begin with \(JSONObject.reservedPrefix) in a payload are the protocol's")
        }
        if let name {
            let request = AdvertisementRequest(localName: name, serviceUUIDs: [ServiceUUIDs.service])
            if let error = AdvertisementBudget(request).error { throw NearbyError(error) }
        }
        guard maximumHandoffs.map({ $0 > 0 }) ?? true else {
            throw NearbyError(
                .invalidConfiguration,
                "maximumHandoffs is \(maximumHandoffs ?? 0), and must be at least 1"
            )
        }
        let profiles = try profiles()
        do throws(EnvelopeError) {
            if profiles.servesExtended { try extendedConfiguration(profiles).check() }
            let basic = NearbyProtocol.HostConfiguration(
                appId: appId, sessionId: sessionId, payload: payload.object, refusesBasic: !profiles.servesBasic)
            do throws(EnvelopeError) {
                return Self.sentences(try basic.check())
            } catch {
                guard profiles.servesExtended, let size = error.size, let limit = error.limit else { throw error }
                return [
                    """
                    The handoff is \(size) bytes: clients of the basic profile, today's iOS and Android peers among them, \
                    take \(limit) at most and are told too_large.
                    """
                ]
            }
        } catch {
            throw NearbyError(envelope: error, of: "handoff", with: payload)
        }
    }

    /// The payload stays out: it is checked above, and comes with each admission.
    func basicConfiguration(_ profiles: HostProfiles) -> NearbyProtocol.HostConfiguration {
        NearbyProtocol.HostConfiguration(appId: appId, sessionId: sessionId, refusesBasic: !profiles.servesBasic)
    }

    func extendedConfiguration(_ profiles: HostProfiles) -> ExtendedHostConfiguration {
        ExtendedHostConfiguration(
            appId: appId,
            sessionId: sessionId,
            payload: payload.object,
            profiles: profiles,
            maximumEnvelope: maximumEnvelopeBytes
        )
    }

    private static func sentences(_ warnings: [NearbyProtocol.HostConfiguration.Warning]) -> [String] {
        var sentences: [String] = []
        let keys = warnings.compactMap { if case .valueIsNotAString(let key) = $0 { key } else { nil } }
        if !keys.isEmpty {
            sentences.append(
                "Today's iOS and Android peers read strings only; they will not see: \(keys.joined(separator: ", "))."
            )
        }
        for case .longEnvelope(let bytes, let comfortable, let mtu) in warnings {
            sentences.append(
                """
                The handoff is \(bytes) bytes; beyond \(comfortable) it does not reach every phone: it takes an ATT MTU \
                of \(mtu) (an iPhone has 185, most Android phones 517). Basic clients below that are told too_large.
                """
            )
        }
        return sentences
    }
}

extension NearbyError {
    /// A message of ours that cannot be written.
    ///
    /// - Parameter payload: what the app gave of it; the advice says how much of that fits.
    init(envelope error: EnvelopeError, of message: String, with payload: NearbyPayload? = nil) {
        if let size = error.size, let limit = error.limit {
            let bytes = payload?.object.encoded().count ?? 0
            let room = limit - (size - bytes)
            let sizes = bytes > 0 && room > 0 ? "The payload is \(bytes) bytes of them, and \(room) fit. " : ""
            self.init(
                .payloadTooLarge,
                "the \(message) is \(size) bytes, \(size - limit) over the \(limit) that fit",
                advice: sizes + "Shorten the payload, or hand over an address from which the rest can be fetched."
            )
        } else {
            self.init(.invalidConfiguration, "the \(message) cannot be written: \(error.message)")
        }
    }
}
