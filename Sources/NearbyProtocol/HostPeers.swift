// SPDX-License-Identifier: MIT

/// The centrals that a host knows of.
struct HostPeers: Sendable {
    struct Peer: Sendable {
        /// The newest ATT MTU; nil while the radio has told none.
        var mtu: Int?
        var isSubscribed = false
        /// Whether it was subscribed at any time.
        var hasSubscribed = false
        /// The last answer, while a late subscription may still want it again.
        var unheard: Unheard?
        fileprivate var touched: UInt64 = 0
    }

    struct Unheard: Sendable {
        let bytes: [UInt8]
        let until: Instant
    }

    private var peers: [PeerID: Peer] = [:]
    private var clock: UInt64 = 0

    var count: Int { peers.count }

    /// The only central there is; nil where there is none, or more than one.
    var only: PeerID? { peers.count == 1 ? peers.first?.key : nil }

    subscript(peer: PeerID) -> Peer? { peers[peer] }

    /// Notes a sign of life, and makes room for a new device at the cost of the one that has been silent longest.
    ///
    /// - Parameter isBusy: devices that must stay.
    /// - Returns: false where no device can make room.
    mutating func touch(_ peer: PeerID, mtu: Int? = nil, isBusy: (PeerID) -> Bool) -> Bool {
        if peers[peer] == nil, peers.count >= ProtocolLimits.hostPeers {
            let idle = peers.filter { !isBusy($0.key) }.min { $0.value.touched < $1.value.touched }
            guard let idle else { return false }
            peers[idle.key] = nil
        }
        clock += 1
        peers[peer, default: Peer()].touched = clock
        if let mtu { peers[peer]?.mtu = mtu }
        return true
    }

    mutating func update(_ peer: PeerID, _ change: (inout Peer) -> Void) {
        guard var state = peers[peer] else { return }
        change(&state)
        peers[peer] = state
    }

    mutating func remove(_ peer: PeerID) {
        peers[peer] = nil
    }

    mutating func removeAll() {
        peers = [:]
    }

    mutating func unsubscribeAll() {
        for peer in peers.keys { peers[peer]?.isSubscribed = false }
    }
}
