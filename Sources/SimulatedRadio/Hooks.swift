// SPDX-License-Identifier: MIT

package import BluetoothLE

/// What an observer of an adapter is told: what a Bluetooth daemon would hear from its controller.
package enum AdapterObservation: Sendable {
    /// An advertisement that arrived while a scan was on, before any filter and merged with nothing.
    case report(AdvertisementReport)
    case linkUp(LinkInfo)
    /// The link is down; the reason as this end knows it.
    case linkDown(LinkInfo, DisconnectReason)
    /// The adapter's new state.
    case status(AdapterStatus)
    /// A central wrote the descriptor of a characteristic of ours.
    case subscribed(LinkInfo, handle: UInt16)
    case unsubscribed(LinkInfo, handle: UInt16)
}

/// One advertisement with its scan response.
package struct AdvertisementReport: Sendable, Hashable {
    package let peer: PeerIdentifier
    package let address: BluetoothAddress
    package let advertisement: Advertisement
    package let rssi: Int?
    package let time: ContinuousClock.Instant
}

/// One end of a link.
package struct LinkInfo: Sendable, Hashable {
    /// The same at both ends; never used again.
    package let id: UInt64
    package let peer: PeerIdentifier
    package let address: BluetoothAddress
    /// Whether this end is the central.
    package let isCentral: Bool
    package let attMTU: Int
}

/// How a request came over the air.
package struct RequestDetails: Sendable, Hashable {
    package let link: LinkInfo
    /// A write without response: nobody waits for the answer.
    package let isCommand: Bool
    /// The value came in prepared writes.
    package let isPrepared: Bool
    package let handle: UInt16
}

extension SimulatedRadio {
    /// Calls `handler` for all that happens at this adapter, in order, until the result is released or cancelled.
    ///
    /// It runs outside the medium's lock, on whatever thread made it happen (with a manual clock: the one that
    /// advances). All handlers of a medium share a queue: hand the value on and return.
    package func observe(_ handler: @escaping @Sendable (AdapterObservation) -> Void) -> ReleaseToken {
        let id = id
        let core = core
        let observer = core.turn { $0.addObserver(id, handler) }
        return ReleaseToken { core.turn { $0.removeObserver(id, observer) } }
    }

    /// The adapter's present state.
    package var status: AdapterStatus { core.turn { $0.status(of: self.id) } }

    /// The links of this adapter in both roles, the oldest first.
    package var links: [LinkInfo] { core.turn { $0.links(of: self.id) } }

    /// Takes down the links to this peer, whoever is the central.
    package func disconnect(_ peer: PeerIdentifier) {
        core.turn { $0.disconnectPeer(peer, of: self.id) }
    }

    /// Ends all scans, sessions and links for good: what a restart means to a daemon that is simulated itself.
    package func reset() {
        core.turn { $0.reset(self.id) }
    }

    /// What a daemon that is simulated itself leaves when it is killed: its advertisements stay on the air, and its
    /// links up for 2 s (as the central) or 4 s, in which nobody answers on them. `adopt` or `reset` ends that.
    package func abandon() {
        core.turn { $0.abandon(self.id) }
    }

    /// What a daemon does that finds the adapter on: it clears the advertisements of one that was killed.
    ///
    /// - Returns: The links that are up all the same. Nobody hears what their peers say.
    package func adopt() -> [LinkInfo] {
        core.turn { state in
            state.adopt(self.id)
            return state.links(of: self.id)
        }
    }

    /// Devices that may be connected to: heard in a scan, and not forgotten since.
    package var knownPeers: [PeerIdentifier] {
        core.turn { $0.adapters[self.id]?.known.keys.sorted { $0.rawValue < $1.rawValue } ?? [] }
    }

    /// Makes a device known that no scan has reported, as one from a daemon's storage.
    package func remember(_ peer: SimulatedRadio) {
        core.turn { $0.remember(peer.id, at: self.id) }
    }

    /// Forgets a device and takes its links down.
    package func forget(_ peer: PeerIdentifier) {
        core.turn { $0.forget(peer, at: self.id) }
    }
}

extension RemoteService {
    /// The handle of a service that a simulated radio discovered. Its `id` is that in four hexadecimal digits.
    package var simulatedHandle: UInt16? { UInt16(id, radix: 16) }
}

extension RemoteCharacteristic {
    /// The declaration's handle; the value has the next one. `id` is that in four hexadecimal digits.
    package var simulatedHandle: UInt16? { UInt16(id, radix: 16) }
}
