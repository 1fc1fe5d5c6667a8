// SPDX-License-Identifier: MIT

/// Handoffs that were sent and do not count as delivered yet; one a device.
struct UnconfirmedHandoffs: Sendable {
    struct Handoff: Sendable {
        let join: JoinID
        let peer: PeerID
        let deadline: Instant
    }

    /// In the order of their deadlines, since all wait equally long.
    private var handoffs: [Handoff] = []

    var nextDeadline: Instant? { handoffs.first?.deadline }

    mutating func add(_ join: JoinID, _ peer: PeerID, at now: Instant) {
        handoffs.append(Handoff(join: join, peer: peer, deadline: now + ProtocolLimits.slotAtMost))
    }

    func contains(_ peer: PeerID) -> Bool {
        handoffs.contains { $0.peer == peer }
    }

    mutating func take(_ peer: PeerID) -> Handoff? {
        guard let position = handoffs.firstIndex(where: { $0.peer == peer }) else { return nil }
        return handoffs.remove(at: position)
    }

    mutating func removeAll() -> [Handoff] {
        defer { handoffs = [] }
        return handoffs
    }

    mutating func expired(at now: Instant) -> Handoff? {
        guard let first = handoffs.first, first.deadline <= now else { return nil }
        return handoffs.removeFirst()
    }
}
