// SPDX-License-Identifier: MIT

/// The client's half of the basic profile: from the start of the scan to the handoff.
package struct ClientMachine: Sendable {
    package let configuration: ClientConfiguration
    /// When `timerFired` is wanted next; nil: not at all.
    package var nextDeadline: Instant? { nil }

    /// - Throws: `EnvelopeError`: the request is too large, or the appId empty.
    package init(_ configuration: ClientConfiguration) throws(EnvelopeError) {
        self.configuration = configuration
        _ = try configuration.request()
    }

    package mutating func started(at now: Instant) -> [ClientAction] { [] }
    /// - Parameter rssi: dBm; 127 or nil: not known.
    package mutating func sighted(_ peer: PeerID, rssi: Int?, at now: Instant) -> [ClientAction] { [] }
    package mutating func gone(_ peer: PeerID, at now: Instant) -> [ClientAction] { [] }
    package mutating func radioUnavailable(_ reason: RadioUnavailability, at now: Instant) -> [ClientAction] { [] }
    package mutating func radioAvailable(at now: Instant) -> [ClientAction] { [] }
    package mutating func exchange(
        _ input: ExchangeInput, _ attempt: AttemptID, at now: Instant
    ) -> [ClientAction] { [] }
    /// The app's pick, where the selection is `.manual`.
    package mutating func chosen(_ peer: PeerID, at now: Instant) -> [ClientAction] { [] }
    package mutating func timerFired(at now: Instant) -> [ClientAction] { [] }
    package mutating func cancelled(at now: Instant) -> [ClientAction] { [] }
}
