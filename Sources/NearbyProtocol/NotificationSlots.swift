// SPDX-License-Identifier: MIT

/// What a host is about to say to one device.
struct HostAnswer: Sendable {
    enum Content: Sendable, Equatable {
        case handoff
        case reject(RejectReason, message: String)
        /// The device's last answer, once more.
        case again
    }

    let peer: PeerID
    let join: JoinID?
    let bytes: [UInt8]
    let content: Content
    /// The request that it answers, to know its repetition by.
    var request: [UInt8] = []
}

/// One exchange at a time on a characteristic whose notifications reach every subscriber.
///
/// A slot begins with an answer's notification and ends when that device disconnects, 1 s after the notification if
/// others wait, 5 s after it at the latest.
struct NotificationSlots: Sendable {
    private struct Slot {
        let peer: PeerID
        let began: Instant
    }

    enum Admission: Equatable {
        /// Send it now: it has the slot.
        case send
        case queued
        case full
    }

    private var slot: Slot?
    private(set) var queue: [HostAnswer] = []

    var isFull: Bool { queue.count >= ProtocolLimits.queuedAnswers }

    var nextDeadline: Instant? {
        guard let slot else { return nil }
        return slot.began + (queue.isEmpty ? ProtocolLimits.slotAtMost : ProtocolLimits.slotWhenOthersWait)
    }

    /// One answer a device: a newer one takes the older one's place.
    mutating func offer(_ answer: HostAnswer, at now: Instant) -> Admission {
        if let position = queue.firstIndex(where: { $0.peer == answer.peer }) {
            queue[position] = answer
            return .queued
        }
        // A device may speak on in its own slot, but not past others: else one that keeps asking would hold it.
        if queue.isEmpty, slot.map({ $0.peer == answer.peer }) ?? true {
            slot = Slot(peer: answer.peer, began: now)
            return .send
        }
        guard !isFull else { return .full }
        queue.append(answer)
        return .queued
    }

    func queued(for peer: PeerID) -> HostAnswer? {
        queue.first { $0.peer == peer }
    }

    func involves(_ peer: PeerID) -> Bool {
        slot?.peer == peer || queue.contains { $0.peer == peer }
    }

    /// Takes a device's queued answer out.
    mutating func withdraw(_ peer: PeerID) -> HostAnswer? {
        guard let position = queue.firstIndex(where: { $0.peer == peer }) else { return nil }
        return queue.remove(at: position)
    }

    /// The device is gone, and its slot over.
    mutating func leave(_ peer: PeerID) {
        if slot?.peer == peer { slot = nil }
    }

    /// The next answer to send, if the slot is free or over.
    mutating func next(at now: Instant) -> HostAnswer? {
        if let deadline = nextDeadline, deadline <= now { slot = nil }
        guard slot == nil, !queue.isEmpty else { return nil }
        let answer = queue.removeFirst()
        slot = Slot(peer: answer.peer, began: now)
        return answer
    }

    mutating func removeAll() -> [HostAnswer] {
        defer { self = NotificationSlots() }
        return queue
    }
}
