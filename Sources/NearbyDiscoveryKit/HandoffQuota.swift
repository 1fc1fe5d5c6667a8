// SPDX-License-Identifier: MIT

import NearbyProtocol

/// Counts handoffs against `maximumHandoffs`, so that two clients that come together do not both get the last one.
struct HandoffQuota: Equatable {
    let limit: Int?
    private(set) var delivered = 0
    /// Joins that the app decides on, or that were handed the payload and have not left yet.
    private var pending: Set<JoinID> = []

    init(limit: Int?) { self.limit = limit }

    var isUsedUp: Bool { limit.map { delivered >= $0 } ?? false }

    /// Whether one more join may be decided on; it counts as pending from then on, and only then.
    ///
    /// - Parameter decisions: How many the app is working on.
    mutating func admits(_ id: JoinID, besides decisions: Int = 0) -> Bool {
        guard decisions < Limits.admissions else { return false }
        guard let limit else { return true }
        guard delivered + pending.count < limit else { return false }
        pending.insert(id)
        return true
    }

    /// Whether a handoff that was promised before may go out once more: its place is still its own, or one is free. A
    /// client that was cut off gives its place up, and may find it taken when it comes back.
    func mayRepeat(_ id: JoinID) -> Bool {
        guard let limit else { return true }
        return pending.contains(id) || delivered + pending.count < limit
    }

    /// The machine's form of an admission. A reject frees the join's place.
    mutating func decide(_ id: JoinID, _ admission: Admission) -> AdmissionDecision {
        switch admission {
        case .handoff(let payload, let sessionId):
            return .handoff(payload: payload.object, sessionId: sessionId)
        case .reject(let reason, let message):
            pending.remove(id)
            return .reject(reason, message: message)
        }
    }

    /// The join came to nothing.
    mutating func ended(_ id: JoinID) { pending.remove(id) }

    mutating func observe(_ event: ExtendedHostEvent) {
        switch event {
        case .joined(let id, _):
            // It had given its place back when its client left, or still has it: `mayRepeat` has seen to it that there
            // is one.
            if limit != nil { pending.insert(id) }
        case .delivered(let id, _):
            delivered += 1
            pending.remove(id)
        case .failed(let id?, _, _), .rejected(let id?, _, _, _, _):
            pending.remove(id)
        default:
            break
        }
    }

    mutating func observe(_ event: NearbyProtocol.HostEvent) {
        switch event {
        case .delivered(let id, _, _):
            delivered += 1
            pending.remove(id)
        case .failed(let id?, _, _), .rejected(let id?, _, _, _):
            pending.remove(id)
        default:
            break
        }
    }
}
