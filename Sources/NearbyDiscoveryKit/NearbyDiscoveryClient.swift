// SPDX-License-Identifier: MIT

public import BluetoothLE

/// The whole framework behind one object and one callback, named as on iOS and Android.
///
/// ```swift
/// let client = NearbyDiscoveryClient()
/// client.onEvent = { event in
///     if case .payloadReceived(let message) = event { print(message.payload?["roomCode"] ?? "") }
/// }
/// client.startScanning(appId: "com.example.myapp")
/// ```
///
/// It does one thing at a time: starting another one first ends the one before, radio work included. Errors come as
/// events, and the state is `idle` after them. Code that wants results in line uses `NearbyHost` and `NearbyClient`.
public final class NearbyDiscoveryClient: Sendable {
    /// What the client is doing. Prints as its name: `scanning`, `connecting`, `connected`, `hosting`, `idle`.
    public enum State: String, Sendable, Hashable, CaseIterable {
        case idle, scanning, connecting, connected, hosting
    }

    /// What the client tells. The list may grow: give a `switch` over it a `default`.
    public enum Event: Sendable, Hashable {
        /// A client got its handoff.
        case payloadReceived(NearbyMessage)
        case stateChanged(State)
        case error(NearbyError)
        /// Host: somebody asks to join, and gets the payload.
        case joinRequested(JoinRequest)
        /// Host: a client took the payload and left.
        case delivered(PeerIdentifier)
    }

    private let core: FacadeCore

    /// - Parameter radio: `nil` chooses one when something is started: this machine's adapter, else the bridge that
    ///   `NEARBY_BRIDGE` names (`DefaultRadio.choose`).
    public init(radio: (any Radio)? = nil) {
        core = FacadeCore(radio: radio)
    }

    /// A client that nobody holds any longer stops what it was doing.
    deinit { core.shutDown() }

    /// Called with one event at a time, in order, off the caller's thread. A handler that takes long holds up the next
    /// event, nothing else; of the events that wait meanwhile, the newest 128 are kept.
    public var onEvent: (@Sendable (Event) -> Void)? {
        get { core.handler }
        set { core.handler = newValue }
    }

    /// Whether the radio that was used last is a bridge to another machine's; see `DefaultRadio.choose`.
    public var usingBridge: Bool { core.usesBridge }

    /// Looks for a host of this app, joins the first that is near enough, and reports `payloadReceived`.
    ///
    /// Searches until it has found one or `stop()` is called.
    ///
    /// - Parameters:
    ///   - minimumRSSI: dBm; `nil`: any distance.
    ///   - security: Without a passcode: sealed, unauthenticated, or plain text with basic hosts.
    public func startScanning(appId: String, minimumRSSI: Int? = nil, security: NearbySecurity = .open) {
        core.start { core, radio throws(NearbyError) in
            let client = try NearbyClient(
                NearbyClient.Configuration(
                    appId: appId,
                    minimumRSSI: minimumRSSI,
                    timeout: nil,
                    whenUnavailable: .fail(after: .seconds(3)),
                    security: security
                ),
                radio: radio
            )
            let result = await FacadeCore.outcome(client.events()) { event in
                switch event {
                case .scanning, .passedOver: core.change(to: .scanning)
                case .connecting: core.change(to: .connecting)
                case .connected: core.change(to: .connected)
                default: break
                }
            } of: { () async throws(NearbyError) in
                try await client.join()
            }
            switch result {
            case .success(let handoff):
                core.report(.payloadReceived(handoff.message))
                await client.finish()
            case .failure(let error):
                await client.finish()
                throw error
            }
        }
    }

    /// Advertises, and hands the payload to every client of this app that asks, until `stop()`.
    public func startHosting(
        appId: String,
        sessionId: String,
        payload: NearbyPayload,
        security: NearbySecurity = .open
    ) {
        core.start { core, radio throws(NearbyError) in
            let host = try NearbyHost(
                NearbyHost.Configuration(
                    appId: appId,
                    sessionId: sessionId,
                    payload: payload,
                    whenUnavailable: .fail(after: .seconds(3)),
                    security: security
                ),
                radio: radio
            )
            try await FacadeCore.outcome(host.events()) { event in
                switch event {
                case .serving: core.change(to: .hosting)
                case .unavailable(let error): core.report(.error(NearbyError(error)))
                case .joinRequested(let request): core.report(.joinRequested(request))
                case .delivered(let client): core.report(.delivered(client))
                default: break
                }
            } of: { () async throws(NearbyError) in
                try await host.run()
            }.get()
        }
    }

    /// Ends what is under way. Returns at once; `idle` is reported when the radio has been released.
    public func stop() {
        core.stop()
    }
}
