// SPDX-License-Identifier: MIT

/// The hellos that a host has given out and nobody has built on yet.
///
/// Each read at offset 0 makes one of its own; further offsets read on in the device's newest. The 4 newest of a
/// device and 256 in all are kept, 30 s each, and each serves one attempt.
struct HelloBook: Sendable {
    struct Snapshot: Sendable {
        let peer: PeerID
        let hello: Hello
        let scalar: SecretBytes
        let expires: Instant
    }

    enum Slice: Equatable {
        case bytes([UInt8])
        case invalidOffset
        /// The key agreement failed on our side.
        case failed
    }

    /// In the order of their making, and so of their expiry.
    private var snapshots: [Snapshot] = []

    var count: Int { snapshots.count }
    var nextDeadline: Instant? { snapshots.first?.expires }

    /// - Parameters:
    ///   - make: makes the hello for a fresh `sid`; called at offset 0 only.
    mutating func read(
        _ peer: PeerID, offset: Int, at now: Instant, make: () -> (hello: Hello, scalar: SecretBytes)?
    ) -> Slice {
        expire(at: now)
        guard (0...ProtocolLimits.helloBytes).contains(offset) else { return .invalidOffset }
        if offset == 0 {
            guard let (hello, scalar) = make() else { return .failed }
            add(Snapshot(peer: peer, hello: hello, scalar: scalar, expires: now + ProtocolLimits.hello))
            return .bytes(hello.bytes)
        }
        // Read on without a beginning, or after it was used or had expired: what is left could not be built on.
        guard let newest = snapshots.last(where: { $0.peer == peer }) else { return .invalidOffset }
        return .bytes(Array(newest.hello.bytes[offset...]))
    }

    /// Takes the hello that an attempt builds on; nil where it is unknown, used, expired, or was read by another device.
    mutating func take(_ sid: [UInt8], by peer: PeerID, at now: Instant) -> Snapshot? {
        expire(at: now)
        guard let position = snapshots.firstIndex(where: { $0.peer == peer && $0.hello.sid == sid }) else { return nil }
        return snapshots.remove(at: position)
    }

    mutating func expire(at now: Instant) {
        snapshots.removeAll { $0.expires <= now }
    }

    mutating func drop(_ peer: PeerID) {
        snapshots.removeAll { $0.peer == peer }
    }

    mutating func removeAll() {
        snapshots = []
    }

    private mutating func add(_ snapshot: Snapshot) {
        let ofPeer = snapshots.indices.filter { snapshots[$0].peer == snapshot.peer }
        if ofPeer.count >= ProtocolLimits.hellosPerDevice {
            snapshots.remove(at: ofPeer[0])
        } else if snapshots.count >= ProtocolLimits.hellos {
            snapshots.removeFirst()
        }
        snapshots.append(snapshot)
    }
}
