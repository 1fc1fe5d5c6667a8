// SPDX-License-Identifier: MIT

@testable import NearbyProtocol

/// A host machine and a clock that moves only when told.
struct HostFixture {
    static let appId = "app"
    static let payload: JSONObject = ["roomCode": "SWIFT42"]

    var machine: HostMachine
    var now = Instant.now
    private var lastRequest: UInt64 = 0

    init(assumedMTU: Int = ProtocolLimits.defaultMTU) throws {
        machine = try HostMachine(
            HostConfiguration(
                appId: Self.appId, sessionId: "s", payload: Self.payload, assumedMTU: assumedMTU))
    }

    static let handoff = Envelope.handoff(appId: appId, sessionId: "s", payload: payload).encoded()
    static let request = Envelope.joinRequest(appId: appId).encoded()

    static func reject(_ reason: RejectReason, _ message: String, appId: String? = appId) -> [UInt8] {
        Envelope.reject(appId: appId, reason: reason, message: message).encoded()
    }

    mutating func pass(_ duration: Duration) {
        now += duration
    }

    /// Time passes, and the timer fires.
    mutating func fire(after duration: Duration) -> [HostAction] {
        now += duration
        return machine.timerFired(at: now)
    }

    mutating func connect(_ peers: PeerID..., subscribed: Bool = true) {
        for peer in peers {
            _ = machine.centralConnected(peer, at: now)
            if subscribed { _ = machine.subscribed(peer, at: now) }
        }
    }

    mutating func write(
        _ bytes: [UInt8] = request, from peer: PeerID, offset: Int = 0, mtu: Int? = 185
    ) -> [HostAction] {
        lastRequest += 1
        return machine.write(RequestID(lastRequest), from: peer, bytes, offset: offset, mtu: mtu, at: now)
    }

    mutating func disconnect(_ peer: PeerID) -> [HostAction] {
        machine.centralDisconnected(peer, at: now)
    }

    mutating func decide(_ join: JoinID, _ decision: AdmissionDecision = .handoff()) -> [HostAction] {
        machine.admissionDecided(join, decision, at: now)
    }
}

extension HostAction {
    /// The reason of a notified reject.
    var rejectReason: RejectReason? {
        guard case .notify(let bytes, _) = self else { return nil }
        return (try? Envelope.decode(bytes, as: .client))?.rejection?.reason
    }
}
