// SPDX-License-Identifier: MIT

/// The messages that a host is sending or about to send, each as frames that are asked for one by one.
///
/// 4 at a time and one a device, so that a slow client holds up nobody but its own. Devices without failed attempts
/// go first.
struct Transmissions: Sendable {
    enum Purpose: Equatable, Sendable {
        /// The answer of the attempt with this tag.
        case answer
        case plaintextReject(RejectReason, message: String)
    }

    struct Transmission: Sendable {
        let id: TransmissionID
        let peer: PeerID
        let tag: FrameTag
        let purpose: Purpose
        let message: [UInt8]
        /// What message 0 said that the client can take; nil where there was none.
        let opening: OpeningMessage?
        /// Whether the device has failed attempts behind it.
        let yields: Bool
        var deadline: Instant
        fileprivate(set) var writer: FrameWriter?

        var isPlaintext: Bool { purpose != .answer }
    }

    private(set) var active: [Transmission] = []
    private var waiting: [Transmission] = []
    private var lastID: UInt64 = 0

    var count: Int { active.count + waiting.count }
    var plaintextCount: Int { (active + waiting).count(where: \.isPlaintext) }
    var nextDeadline: Instant? { (active + waiting).map(\.deadline).min() }

    func isTag(_ tag: FrameTag, inUseByOtherThan peer: PeerID) -> Bool {
        (active + waiting).contains { $0.tag == tag && $0.peer != peer }
    }

    mutating func add(
        _ message: [UInt8], to peer: PeerID, _ tag: FrameTag, _ purpose: Purpose, opening: OpeningMessage?,
        yields: Bool, at now: Instant
    ) {
        lastID += 1
        let transmission = Transmission(
            id: TransmissionID(lastID), peer: peer, tag: tag, purpose: purpose, message: message, opening: opening,
            yields: yields, deadline: now + ProtocolLimits.message)
        let position = yields ? nil : waiting.firstIndex { $0.yields }
        waiting.insert(transmission, at: position ?? waiting.endIndex)
    }

    /// Starts what may start.
    ///
    /// - Parameter frameBytes: the largest frame that the client takes now: MTUs change between messages.
    /// - Returns: what was started, with its first frame.
    mutating func start(
        at now: Instant, frameBytes: (Transmission) -> Int
    ) -> [(transmission: Transmission, frame: [UInt8])] {
        var started: [(Transmission, [UInt8])] = []
        while active.count < ProtocolLimits.messagesAtOnce,
            let position = waiting.firstIndex(where: { next in !active.contains { $0.peer == next.peer } })
        {
            var transmission = waiting.remove(at: position)
            var writer = FrameWriter(
                transmission.message, tag: transmission.tag, isPlaintext: transmission.isPlaintext,
                frameBytes: frameBytes(transmission))
            let frame = writer.next() ?? []
            transmission.writer = writer
            transmission.deadline = now + ProtocolLimits.message
            active.append(transmission)
            started.append((transmission, frame))
        }
        return started
    }

    /// The frame before was taken.
    ///
    /// - Returns: nil for a transmission that is over; else it, as it is now, and its next frame, or nil if that was the
    ///   last.
    mutating func next(_ id: TransmissionID) -> (transmission: Transmission, frame: [UInt8]?)? {
        guard let position = active.firstIndex(where: { $0.id == id }) else { return nil }
        let frame = active[position].writer?.next()
        let transmission = active[position]
        if frame == nil { active.remove(at: position) }
        return (transmission, frame)
    }

    /// Takes an answer out whose last frame is on its way, since its receipt has come before the radio's word.
    mutating func finish(_ tag: FrameTag) -> Bool {
        guard let position = active.firstIndex(where: { $0.tag == tag && $0.purpose == .answer }),
            active[position].writer?.isDone == true
        else { return false }
        active.remove(at: position)
        return true
    }

    mutating func drop(where predicate: (Transmission) -> Bool) {
        active.removeAll(where: predicate)
        waiting.removeAll(where: predicate)
    }

    mutating func expired(at now: Instant) -> Transmission? {
        guard let due = (active + waiting).filter({ $0.deadline <= now }).min(by: { $0.deadline < $1.deadline }) else {
            return nil
        }
        drop { $0.id == due.id }
        return due
    }
}
