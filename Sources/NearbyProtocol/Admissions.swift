// SPDX-License-Identifier: MIT

/// The join requests that the app is being asked about; one a device.
struct Admissions: Sendable {
    struct Pending: Sendable {
        let request: JoinRequest
        /// The request as it came, to know its repetition by.
        let bytes: [UInt8]
        let deadline: Instant
    }

    /// In the order of their deadlines, since all have equally long.
    private(set) var pending: [Pending] = []
    private var lastID: UInt64

    /// - Parameter lastID: the ids count up from here; two machines with ids of their own can share a table.
    init(after lastID: UInt64 = 0) {
        self.lastID = lastID
    }

    var nextDeadline: Instant? { pending.first?.deadline }
    var isFull: Bool { pending.count >= ProtocolLimits.pendingAdmissions }

    mutating func add(_ envelope: Envelope, bytes: [UInt8], from peer: PeerID, at now: Instant) -> JoinRequest {
        lastID += 1
        let request = JoinRequest(
            id: JoinID(lastID), peer: peer, appId: envelope.appId, sessionId: envelope.sessionId,
            payload: envelope.payload?.withoutReservedKeys)
        pending.append(Pending(request: request, bytes: bytes, deadline: now + ProtocolLimits.admission))
        return request
    }

    func of(_ peer: PeerID) -> Pending? {
        pending.first { $0.request.peer == peer }
    }

    mutating func take(_ id: JoinID) -> Pending? {
        guard let position = pending.firstIndex(where: { $0.request.id == id }) else { return nil }
        return pending.remove(at: position)
    }

    mutating func take(from peer: PeerID) -> Pending? {
        of(peer).flatMap { take($0.request.id) }
    }

    mutating func removeAll() -> [Pending] {
        defer { pending = [] }
        return pending
    }

    mutating func expired(at now: Instant) -> Pending? {
        guard let first = pending.first, first.deadline <= now else { return nil }
        return pending.removeFirst()
    }
}
