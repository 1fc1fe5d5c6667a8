// SPDX-License-Identifier: MIT

/// The host's half of the basic profile.
package struct HostMachine: Sendable {
    package let configuration: HostConfiguration
    /// When `timerFired` is wanted next; nil: not at all.
    package var nextDeadline: Instant? { nil }

    package init(_ configuration: HostConfiguration) throws(EnvelopeError) {
        _ = try configuration.check()
        self.configuration = configuration
    }

    package mutating func centralConnected(_ peer: PeerID, at now: Instant) -> [HostAction] { [] }
    package mutating func centralDisconnected(_ peer: PeerID, at now: Instant) -> [HostAction] { [] }
    /// - Parameter peer: nil where the radio cannot tell who subscribed.
    package mutating func subscribed(_ peer: PeerID?, mtu: Int? = nil, at now: Instant) -> [HostAction] { [] }
    package mutating func unsubscribed(_ peer: PeerID?, at now: Instant) -> [HostAction] { [] }
    package mutating func write(
        _ request: RequestID, from peer: PeerID, _ bytes: [UInt8], offset: Int = 0, mtu: Int?, at now: Instant
    ) -> [HostAction] { [] }
    package mutating func admissionDecided(
        _ join: JoinID, _ decision: AdmissionDecision, at now: Instant
    ) -> [HostAction] { [] }
    package mutating func timerFired(at now: Instant) -> [HostAction] { [] }
    /// The radio's stack went away: every peer is gone. The machine goes on when it is back.
    package mutating func radioReset(at now: Instant) -> [HostAction] { [] }
    package mutating func stop(at now: Instant) -> [HostAction] { [] }
}
