// SPDX-License-Identifier: MIT

/// Puts the frames of one tag together, one message after the other.
///
/// A frame out of its order drops what there is, and frames that go on with it are refused; sequence number 0 starts
/// afresh. Where such a start is really the middle of a message that was dropped, 256 frames on, what comes of it does
/// not open.
struct FrameAssembly: Equatable, Sendable {
    enum Verdict: Equatable, Sendable {
        case incomplete
        case complete([UInt8], isPlaintext: Bool)
        case refused(FrameFault)
    }

    /// The longest sealed and the longest plaintext message, in bytes; nil: none.
    private let sealedLimit: Int
    private let plaintextLimit: Int?
    private(set) var bytes: [UInt8] = []
    private var expected: UInt8 = 0
    private var isPlaintext = false
    private var began: Instant?
    private var latest: Instant?

    init(sealedLimit: Int, plaintextLimit: Int? = nil) {
        self.sealedLimit = sealedLimit
        self.plaintextLimit = plaintextLimit
    }

    /// When the half message is dropped; nil where there is none.
    var deadline: Instant? {
        guard let began, let latest else { return nil }
        return min(began + ProtocolLimits.message, latest + ProtocolLimits.betweenFrames)
    }

    var isEmpty: Bool { began == nil }

    mutating func take(_ frame: Frame, at now: Instant) -> Verdict {
        if let deadline, deadline <= now {
            let wasSlow = began.map { $0 + ProtocolLimits.message <= now } ?? false
            reset()
            if frame.sequence != 0 { return .refused(wasSlow ? .tooSlow : .outOfOrder) }
        }
        if isEmpty || frame.sequence != expected {
            reset()
            guard frame.sequence == 0 else { return .refused(.outOfOrder) }
        }
        let limit = frame.isPlaintext ? plaintextLimit : sealedLimit
        guard let limit, isEmpty || frame.isPlaintext == isPlaintext else {
            reset()
            return .refused(.wrongPlaintextFlag)
        }
        guard bytes.count + frame.data.count <= limit else {
            reset()
            return .refused(.tooLong)
        }
        began = began ?? now
        latest = now
        isPlaintext = frame.isPlaintext
        bytes += frame.data
        expected = frame.sequence &+ 1
        if frame.moreFollows { return .incomplete }
        defer { reset() }
        return .complete(bytes, isPlaintext: isPlaintext)
    }

    mutating func reset() {
        bytes = []
        expected = 0
        began = nil
        latest = nil
    }
}

/// The half messages of all clients of a host, by device and tag.
struct FrameAssemblies: Sendable {
    struct Key: Hashable, Sendable {
        let peer: PeerID
        let tag: FrameTag
    }

    private let limit: Int
    private var assemblies: [Key: FrameAssembly] = [:]

    /// - Parameter limit: the longest message, in bytes.
    init(limit: Int) {
        self.limit = limit
    }

    var count: Int { assemblies.count }
    var byteCount: Int { assemblies.values.reduce(0) { $0 + $1.bytes.count } }
    var nextDeadline: Instant? { assemblies.values.compactMap(\.deadline).min() }

    func isTag(_ tag: FrameTag, inUseByOtherThan peer: PeerID) -> Bool {
        assemblies.keys.contains { $0.tag == tag && $0.peer != peer }
    }

    mutating func take(_ frame: Frame, from peer: PeerID, at now: Instant) -> FrameAssembly.Verdict {
        let key = Key(peer: peer, tag: frame.tag)
        if assemblies[key] == nil {
            guard frame.sequence == 0 else { return .refused(.outOfOrder) }
            guard !frame.isPlaintext else { return .refused(.wrongPlaintextFlag) }
            let isFull =
                assemblies.count >= ProtocolLimits.assemblies
                || assemblies.keys.count(where: { $0.peer == peer }) >= ProtocolLimits.assembliesPerDevice
            // A message of one frame needs no place.
            guard !isFull || !frame.moreFollows else { return .refused(.tooManyMessages) }
        }
        // Taken out while it grows, so that its bytes are not copied for each frame.
        var assembly = assemblies.removeValue(forKey: key) ?? FrameAssembly(sealedLimit: limit)
        let verdict = assembly.take(frame, at: now)
        if !assembly.isEmpty { assemblies[key] = assembly }
        return verdict
    }

    mutating func drop(_ peer: PeerID) {
        assemblies = assemblies.filter { $0.key.peer != peer }
    }

    mutating func removeAll() {
        assemblies = [:]
    }

    /// A half message whose time is over, and what was wrong with it.
    mutating func expired(at now: Instant) -> Key? {
        let due = assemblies.filter { $0.value.deadline.map { $0 <= now } ?? false }
        guard let key = due.min(by: { ($0.value.deadline ?? now) < ($1.value.deadline ?? now) })?.key else {
            return nil
        }
        assemblies[key] = nil
        return key
    }
}
