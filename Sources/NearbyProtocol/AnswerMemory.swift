// SPDX-License-Identifier: MIT

/// What a host has answered, so that a client that asks again gets the same without the app being asked twice.
///
/// The key holds a hash of the whole request: another request under the same id is another request.
struct AnswerMemory: Sendable {
    struct Key: Hashable, Sendable {
        let appId: [UInt8]
        let id: JoinRequestID
        let hash: [UInt8]

        /// Nil where the request has no id that can be used.
        init?(_ envelope: Envelope, bytes: [UInt8]) {
            guard let text = envelope.payload?.string(JoinRequestID.key), let id = JoinRequestID(text) else {
                return nil
            }
            appId = Array(envelope.appId.utf8)
            self.id = id
            hash = Sodium.genericHash(bytes)
        }
    }

    struct Entry: Sendable {
        let key: Key
        let join: JoinID
        /// The envelope, to be sealed anew for whoever asks again.
        let answer: HostReply
        let expires: Instant
        /// Whether its delivery has been told of.
        var isDelivered = false
    }

    /// In the order of their expiry.
    private var entries: [Entry] = []
    private(set) var byteCount = 0

    var count: Int { entries.count }
    var nextDeadline: Instant? { entries.first?.expires }

    subscript(key: Key) -> Entry? { entries.first { $0.key == key } }

    mutating func remember(_ key: Key, _ join: JoinID, _ answer: HostReply, at now: Instant) {
        guard answer.envelope.count <= ProtocolLimits.rememberedAnswerBytes else { return }
        remove { $0.key == key }
        while entries.count >= ProtocolLimits.rememberedAnswers
            || byteCount + answer.envelope.count > ProtocolLimits.rememberedAnswerBytes
        {
            byteCount -= entries.removeFirst().answer.envelope.count
        }
        entries.append(Entry(key: key, join: join, answer: answer, expires: now + ProtocolLimits.rememberedAnswer))
        byteCount += answer.envelope.count
    }

    /// - Returns: false where that was told before.
    mutating func delivered(_ join: JoinID) -> Bool {
        guard let position = entries.firstIndex(where: { $0.join == join }) else { return true }
        defer { entries[position].isDelivered = true }
        return !entries[position].isDelivered
    }

    mutating func expire(at now: Instant) {
        remove { $0.expires <= now }
    }

    mutating func removeAll() {
        remove { _ in true }
    }

    private mutating func remove(_ predicate: (Entry) -> Bool) {
        entries.removeAll(where: predicate)
        byteCount = entries.reduce(0) { $0 + $1.answer.envelope.count }
    }
}

/// A sealed answer before it is sealed.
struct HostReply: Equatable, Sendable {
    enum Content: Equatable, Sendable {
        case handoff
        case reject(RejectReason, message: String)
    }

    let envelope: [UInt8]
    let content: Content
}
