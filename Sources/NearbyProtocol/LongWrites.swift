// SPDX-License-Identifier: MIT

/// The beginnings of long writes whose rest has not come yet.
///
/// bluetoothd 5.66 was seen to hand 512 bytes of prepared writes over as a first part of 504 and, only if that was
/// accepted, the rest at an offset behind it.
struct LongWrites: Sendable {
    private struct Part {
        let peer: PeerID
        var bytes: [UInt8]
        let deadline: Instant
    }

    /// In the order of their deadlines, since all wait equally long.
    private var parts: [Part] = []

    var nextDeadline: Instant? { parts.first?.deadline }

    /// Whether a value is to be kept for its rest rather than judged now.
    static func isPart(_ bytes: [UInt8]) -> Bool {
        bytes.count >= ProtocolLimits.longWritePartBytes && bytes.count < ProtocolLimits.envelopeBytes
            && Envelope.isPrefix(bytes)
    }

    mutating func keep(_ bytes: [UInt8], from peer: PeerID, at now: Instant) {
        if let position = parts.firstIndex(where: { $0.peer == peer }) {
            // A third part does not buy more time.
            parts[position].bytes = bytes
        } else {
            parts.append(Part(peer: peer, bytes: bytes, deadline: now + ProtocolLimits.longWriteRemainder))
        }
    }

    /// The value so far with this at its end; nil where it does not belong there.
    func appending(_ bytes: [UInt8], at offset: Int, from peer: PeerID) -> [UInt8]? {
        guard let part = parts.first(where: { $0.peer == peer }), part.bytes.count == offset else { return nil }
        return part.bytes + bytes
    }

    /// - Returns: whether there was one.
    @discardableResult
    mutating func drop(_ peer: PeerID) -> Bool {
        let before = parts.count
        parts.removeAll { $0.peer == peer }
        return parts.count < before
    }

    mutating func removeAll() -> [PeerID] {
        defer { parts = [] }
        return parts.map(\.peer)
    }

    func contains(_ peer: PeerID) -> Bool {
        parts.contains { $0.peer == peer }
    }

    mutating func expired(at now: Instant) -> PeerID? {
        guard let first = parts.first, first.deadline <= now else { return nil }
        return parts.removeFirst().peer
    }
}
