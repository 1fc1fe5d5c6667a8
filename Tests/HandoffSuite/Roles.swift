// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import NearbyDiscoveryKit

/// A `NearbyHost` that runs, with what it tells.
struct RunningHost: Sendable {
    let events: Recorder<HostEvent>
    let run: Task<Result<Void, NearbyError>, Never>

    static let open: @Sendable (JoinRequest) async -> Admission = { _ in .handoff(["roomCode": "SWIFT42"]) }

    /// Returns once the host serves.
    static func start(
        _ bench: ContractBench,
        _ configuration: NearbyHost.Configuration = NearbyHost.Configuration(appId: Suite.appId, name: "suite"),
        on radio: (any Radio)? = nil,
        waitingToServe: Bool = true,
        admit: @escaping @Sendable (JoinRequest) async -> Admission = open
    ) async throws -> RunningHost {
        let radio = radio ?? bench.peripheral
        let host = try NearbyHost(configuration, radio: radio)
        let events = Recorder(host.events(), clock: radio.clock)
        let run = Task { () -> Result<Void, NearbyError> in
            do throws(NearbyError) { return .success(try await host.run(admit)) } catch { return .failure(error) }
        }
        let running = RunningHost(events: events, run: run)
        if waitingToServe {
            do {
                _ = try await events.next(within: bench.patience, "the host serves") { $0.isServing ? true : nil }
            } catch {
                await running.stop()
                throw error
            }
        }
        return running
    }

    /// Cancels the host and waits for its end.
    func stop() async {
        run.cancel()
        _ = await run.value
    }
}

extension ContractBench {
    func configuration(
        appId: String = Suite.appId,
        payload: NearbyPayload? = nil,
        minimumRSSI: Int? = nil,
        selection: HostSelection = .first,
        timeout: Duration? = nil,
        profile: ProfileChoice = .auto,
        security: NearbySecurity = .open
    ) -> NearbyClient.Configuration {
        NearbyClient.Configuration(
            appId: appId,
            payload: payload,
            minimumRSSI: minimumRSSI,
            selection: selection,
            timeout: timeout ?? patience * 2,
            whenUnavailable: .wait,
            profile: profile,
            security: security
        )
    }

    /// Joins from the central, and waits until the link is down.
    func join(
        _ configuration: NearbyClient.Configuration? = nil,
        from radio: (any Radio)? = nil
    ) async throws -> Handoff {
        let client = try NearbyClient(configuration ?? self.configuration(), radio: radio ?? central)
        let handoff = try await client.join()
        await client.finish()
        return handoff
    }

    /// Runs a host, lets the case run, and stops the host whatever happened.
    func withHost(
        _ configuration: NearbyHost.Configuration = NearbyHost.Configuration(appId: Suite.appId, name: "suite"),
        admit: @escaping @Sendable (JoinRequest) async -> Admission = RunningHost.open,
        _ body: (RunningHost) async throws -> Void
    ) async throws {
        let host = try await RunningHost.start(self, configuration, admit: admit)
        do {
            try await body(host)
        } catch {
            await host.stop()
            throw error
        }
        await host.stop()
    }

    /// Runs a case with a bare client that is connected to a running host.
    func withRawClient(
        _ configuration: NearbyHost.Configuration = NearbyHost.Configuration(appId: Suite.appId, name: "suite"),
        admit: @escaping @Sendable (JoinRequest) async -> Admission = RunningHost.open,
        _ body: (RunningHost, RawClient) async throws -> Void
    ) async throws {
        try await withHost(configuration, admit: admit) { host in
            let client = try await RawClient.connect(self, from: central)
            do {
                try await body(host, client)
            } catch {
                await client.connection.disconnect()
                throw error
            }
            await client.connection.disconnect()
        }
    }

    func requireRoom(_ handoff: Handoff, _ code: String = "SWIFT42") throws {
        try require(handoff.payload["roomCode"] == code, "the payload: \(handoff.payload)")
        try require(handoff.message.appId == Suite.appId, "the appId: \(handoff.message.appId)")
    }
}

/// Checks that an operation fails with a framework error of one of these codes, and gives the error.
@discardableResult
func requireNearbyError<Value>(
    _ codes: NearbyError.Code...,
    from what: String,
    _ operation: () async throws -> Value
) async throws -> NearbyError {
    do {
        _ = try await operation()
    } catch let error as NearbyError {
        try require(codes.contains(error.code), "\(what): \(error.code) (\(error)) in place of \(codes)")
        return error
    }
    throw ContractViolation(description: "\(what): succeeded in place of \(codes)")
}

extension HostEvent {
    var isServing: Bool {
        if case .serving = self { true } else { false }
    }

    var isUnavailable: Bool {
        if case .unavailable = self { true } else { false }
    }

    var delivered: PeerIdentifier? {
        if case .delivered(let client) = self { client } else { nil }
    }

    var rejection: RejectReason? {
        if case .rejected(_, let reason, _) = self { reason } else { nil }
    }

    var failure: NearbyError? {
        if case .failed(_, let error) = self { error } else { nil }
    }

    /// A short name for the order of events.
    var kind: String {
        switch self {
        case .serving: "serving"
        case .unavailable: "unavailable"
        case .joinRequested: "joinRequested"
        case .handedOff: "handedOff"
        case .delivered: "delivered"
        case .rejected: "rejected"
        case .failed: "failed"
        case .progress: "progress"
        case .underAttack: "underAttack"
        }
    }
}
