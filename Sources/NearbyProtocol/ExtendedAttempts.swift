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
    /// Whether its join was delivered by another attempt: whatever becomes of this one, nobody is told.
    var isRepeat = false

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

/// The attempts whose keys a host holds; their tags are unique.
struct ExtendedAttempts: Sendable {
    /// In the order of their coming.
    private(set) var all: [ExtendedAttempt] = []

    var count: Int { all.count }
    var nextDeadline: Instant? { all.compactMap(\.deadline).min() }

    subscript(tag: FrameTag) -> ExtendedAttempt? {
        get { all.first { $0.tag == tag } }
        set {
            guard let position = all.firstIndex(where: { $0.tag == tag }) else {
                if let newValue { all.append(newValue) }
                return
            }
            if let newValue {
                all[position] = newValue
            } else {
                all.remove(at: position)
            }
        }
    }

    func hasRoom(for peer: PeerID) -> Bool {
        all.count < ProtocolLimits.attempts && of(peer).count < ProtocolLimits.attemptsPerPeer
    }

    func of(_ peer: PeerID) -> [ExtendedAttempt] {
        all.filter { $0.peer == peer }
    }

    /// Nothing more is told of a join that was delivered.
    mutating func delivered(_ join: JoinID) {
        for position in all.indices where all[position].join == join { all[position].isRepeat = true }
    }

    func waiting(for join: JoinID) -> [ExtendedAttempt] {
        all.filter { $0.state == .deciding(join) }
    }

    mutating func expired(at now: Instant) -> ExtendedAttempt? {
        guard let position = all.firstIndex(where: { $0.deadline.map { $0 <= now } ?? false }) else { return nil }
        return all.remove(at: position)
    }

    mutating func removeAll() -> [ExtendedAttempt] {
        defer { all = [] }
        return all
    }
}
