// SPDX-License-Identifier: MIT

/// An attempt whose message 0 opened: its client knows the passcode, where there is one.
struct ExtendedAttempt: Sendable {
    enum State: Equatable, Sendable {
        /// The app is asked.
        case deciding(JoinID)
        /// The answer waits, or is on its way.
        case answering(JoinID?)
        /// All of the handoff has been handed over.
        case awaitingReceipt(JoinID, until: Instant)
        /// A reject has been handed over; the tag stays taken while it travels.
        case rejected(until: Instant)
    }

    let peer: PeerID
    let tag: FrameTag
    let opening: OpeningMessage
    let appId: String?
    var channel: SealedChannel
    var state: State
    /// The answer once there is one, and its seal: sent again, it is sent as it is.
    var reply: HostReply?
    var sealed: SealedMessage?
    /// Whether the answer set out while the device was not subscribed: then it goes out once more when it is.
    var isUnheard = false

    var deadline: Instant? {
        switch state {
        case .awaitingReceipt(_, let until), .rejected(let until): until
        case .deciding, .answering: nil
        }
    }

    var join: JoinID? {
        switch state {
        case .deciding(let join), .awaitingReceipt(let join, _): join
        case .answering(let join): join
        case .rejected: nil
        }
    }
}

/// The attempts whose keys a host holds, by tag.
struct ExtendedAttempts: Sendable {
    private var attempts: [FrameTag: ExtendedAttempt] = [:]

    var count: Int { attempts.count }
    var all: [ExtendedAttempt] { attempts.values.sorted { $0.tag.bytes.lexicographicallyPrecedes($1.tag.bytes) } }
    var nextDeadline: Instant? { attempts.values.compactMap(\.deadline).min() }

    subscript(tag: FrameTag) -> ExtendedAttempt? {
        get { attempts[tag] }
        set { attempts[tag] = newValue }
    }

    func hasRoom(for peer: PeerID) -> Bool {
        attempts.count < ProtocolLimits.attempts && of(peer).count < ProtocolLimits.attemptsPerPeer
    }

    func of(_ peer: PeerID) -> [ExtendedAttempt] {
        all.filter { $0.peer == peer }
    }

    func waiting(for join: JoinID) -> [ExtendedAttempt] {
        all.filter { $0.state == .deciding(join) }
    }

    mutating func expired(at now: Instant) -> ExtendedAttempt? {
        let due = all.first { $0.deadline.map { $0 <= now } ?? false }
        if let due { attempts[due.tag] = nil }
        return due
    }

    mutating func removeAll() -> [ExtendedAttempt] {
        defer { attempts = [:] }
        return all
    }
}
