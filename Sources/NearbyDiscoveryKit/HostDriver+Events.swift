// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

/// What the machines report, in the app's words.
extension HostDriver {
    func report(_ event: NearbyProtocol.HostEvent) {
        quota.observe(event)
        switch event {
        case .requested, .answeredAgain:
            break
        case .handedOff(_, let peer):
            hub.send(.handedOff(client: PeerIdentifier(peer.rawValue)))
        case .delivered(_, let peer, _):
            hub.send(.delivered(client: PeerIdentifier(peer.rawValue)))
        case .rejected(_, let peer, let reason, let message):
            hub.send(.rejected(client: PeerIdentifier(peer.rawValue), reason: reason, message: message))
        case .failed(_, let peer, let failure):
            guard let error = NearbyError(failure) else { break }
            hub.send(.failed(client: PeerIdentifier(peer.rawValue), error))
        }
    }

    func report(_ event: ExtendedHostEvent) {
        quota.observe(event)
        switch event {
        case .requested, .joined, .repeated, .attemptFailed, .frameRefused:
            // A request is told of when the app is asked, a failed attempt when it is rejected. A refused frame is
            // nobody's join yet.
            break
        case .progress(_, let peer, let bytes, let total):
            hub.send(.progress(client: PeerIdentifier(peer.rawValue), bytes: bytes, of: total))
        case .handedOff(_, let peer):
            hub.send(.handedOff(client: PeerIdentifier(peer.rawValue)))
        case .delivered(_, let peer):
            hub.send(.delivered(client: PeerIdentifier(peer.rawValue)))
        case .rejected(_, let peer, let reason, let message, _):
            hub.send(.rejected(client: PeerIdentifier(peer.rawValue), reason: reason, message: message))
        case .underAttack(let seconds):
            hub.send(.underAttack(retryAfter: .seconds(seconds)))
        case .failed(_, let peer, let failure):
            guard let error = NearbyError(failure) else { break }
            hub.send(.failed(client: PeerIdentifier(peer.rawValue), error))
        }
    }
}
