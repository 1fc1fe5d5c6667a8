// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

/// The hosts in reach as an app shows them: the machine's judgement with the names that the radio heard.
struct CandidateList {
    private var discoveries: [PeerIdentifier: Discovery] = [:]
    private var judged: [PeerIdentifier: Candidate] = [:]
    /// When each was last heard.
    private var heardAt: [PeerIdentifier: UInt64] = [:]
    private var clock: UInt64 = 0

    /// Makes room for a new device as the machine does, at the cost of the one that has been silent longest: else those
    /// that came first would keep later ones from the list for good.
    mutating func heard(_ discovery: Discovery) {
        if discoveries[discovery.peer] == nil, discoveries.count >= Limits.candidates,
            let oldest = heardAt.min(by: { $0.value < $1.value })?.key
        {
            remove(oldest)
        }
        clock += 1
        heardAt[discovery.peer] = clock
        discoveries[discovery.peer] = discovery
    }

    mutating func update(_ candidate: Candidate) {
        let peer = PeerIdentifier(candidate.peer.rawValue)
        guard discoveries[peer] != nil else { return }
        judged[peer] = candidate
    }

    mutating func remove(_ peer: PeerIdentifier) {
        discoveries[peer] = nil
        judged[peer] = nil
        heardAt[peer] = nil
    }

    /// The strongest first; those without a reading last, by name of the peer.
    var snapshot: [NearbyCandidate] {
        judged.map { peer, candidate in
            let discovery = discoveries[peer]
            return NearbyCandidate(
                peer: peer,
                name: discovery?.advertisement.localName,
                address: discovery?.address,
                rssi: candidate.rssi,
                isNear: candidate.isNear
            )
        }
        .sorted { left, right in
            (left.rssi ?? -128, right.peer.rawValue) > (right.rssi ?? -128, left.peer.rawValue)
        }
    }
}
