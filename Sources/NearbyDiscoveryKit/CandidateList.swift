// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

/// The hosts in reach as an app shows them: the machine's judgement with the names that the radio heard.
struct CandidateList {
    private var discoveries: [PeerIdentifier: Discovery] = [:]
    private var judged: [PeerIdentifier: Candidate] = [:]

    mutating func heard(_ discovery: Discovery) {
        guard discoveries[discovery.peer] != nil || discoveries.count < Limits.candidates else { return }
        discoveries[discovery.peer] = discovery
    }

    mutating func update(_ candidate: Candidate) {
        let peer = PeerIdentifier(candidate.peer.rawValue)
        guard judged[peer] != nil || judged.count < Limits.candidates else { return }
        judged[peer] = candidate
    }

    mutating func remove(_ peer: PeerIdentifier) {
        discoveries[peer] = nil
        judged[peer] = nil
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
