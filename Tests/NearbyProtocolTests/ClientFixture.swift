// SPDX-License-Identifier: MIT

@testable import NearbyProtocol

/// A client machine and a clock that moves only when told.
struct ClientFixture {
    static let appId = "app"
    static let request = Envelope.joinRequest(appId: appId).encoded()
    static let handoff = Envelope.handoff(appId: appId, sessionId: "s", payload: ["roomCode": "SWIFT42"])

    var machine: ClientMachine
    let start = Instant.now
    var now: Instant

    init(
        minimumRSSI: Int? = nil, selection: HostSelection = .first, deadline: Duration = .seconds(30),
        reportsEveryAdvertisement: Bool = true
    ) throws {
        now = start
        machine = try ClientMachine(
            ClientConfiguration(
                appId: Self.appId, minimumRSSI: minimumRSSI, selection: selection, deadline: deadline,
                reportsEveryAdvertisement: reportsEveryAdvertisement))
    }

    static func reject(_ reason: RejectReason, appId: String = appId) -> [UInt8] {
        Envelope.reject(appId: appId, reason: reason, message: "no").encoded()
    }

    static func rejection(_ reason: RejectReason) -> Rejection {
        Rejection(
            reason: reason, message: "no", payload: ["reason": .string(reason.rawValue), "message": "no"])
    }

    mutating func begin() -> [ClientAction] { machine.started(at: now) }

    mutating func see(_ peer: PeerID, _ rssi: Int? = -50) -> [ClientAction] {
        machine.sighted(peer, rssi: rssi, at: now)
    }

    mutating func tell(_ attempt: AttemptID, _ input: ExchangeInput) -> [ClientAction] {
        machine.exchange(ExtendedExchangeInput(input), attempt, at: now)
    }

    mutating func notify(_ attempt: AttemptID, _ bytes: [UInt8]) -> [ClientAction] {
        tell(attempt, .notified(bytes))
    }

    mutating func fire(after duration: Duration) -> [ClientAction] {
        now += duration
        return machine.timerFired(at: now)
    }

    /// Fires the timer whenever it is wanted, until the end.
    mutating func runOut() -> [ClientAction] {
        var actions: [ClientAction] = []
        var rounds = 0
        while let deadline = machine.nextDeadline, rounds < 1_000 {
            now = max(now, deadline)
            actions += machine.timerFired(at: now)
            rounds += 1
        }
        return actions
    }

    /// An attempt up to the given phase, with one instance.
    mutating func bring(_ attempt: AttemptID, to phase: ExchangePhase, instances: [Int] = [1]) {
        let steps: [(ExchangePhase, ExchangeInput)] = [
            (.connecting, .connected), (.discovering, .discovered(instances: instances)),
            (.subscribing, .subscribed), (.writing, .written),
        ]
        for (before, input) in steps {
            if before == phase { return }
            _ = tell(attempt, input)
        }
    }
}

extension [ClientAction] {
    var result: ClientResult? {
        compactMap { if case .finish(let result) = $0 { result } else { nil } }.only
    }

    var failure: ClientFailure? {
        if case .failure(let failure)? = result { failure } else { nil }
    }

    var handoff: Envelope? {
        if case .handoff(let envelope, _, _, _)? = result { envelope } else { nil }
    }

    var connects: [PeerID] {
        compactMap { if case .connect(_, let peer, _) = $0 { peer } else { nil } }
    }

    /// All but reports.
    var commands: [ClientAction] {
        filter { if case .report = $0 { false } else { true } }
    }
}

extension ExtendedExchangeInput {
    /// As a host has it that knows the basic profile only.
    init(_ input: ExchangeInput) {
        switch input {
        case .connected: self = .connected
        case .connectFailed(let failure): self = .connectFailed(failure)
        case .discovered(let instances):
            self = .discovered(instances.map { ServiceInstance(id: $0, hasMessage: true, hasHello: false) })
        case .discoveryFailed(let failure): self = .discoveryFailed(failure)
        case .subscribed: self = .subscribed(mtu: nil)
        case .subscribeFailed(let failure): self = .subscribeFailed(failure)
        case .written: self = .written
        case .writeRefused(let code): self = .writeRefused(code)
        case .writeFailed(let failure): self = .writeFailed(failure)
        case .notified(let bytes, let instance): self = .notified(bytes, instance: instance)
        case .disconnected(let failure): self = .disconnected(failure)
        }
    }
}
