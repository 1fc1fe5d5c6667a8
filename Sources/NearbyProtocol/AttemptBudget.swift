// SPDX-License-Identifier: MIT

/// How many wrong passcodes a host still stands: 20, and one more every 30 s.
///
/// For the host as a whole, since addresses rotate. Only failures are counted: who has the passcode guesses nothing.
struct AttemptBudget: Equatable, Sendable {
    private var failuresLeft = ProtocolLimits.failedAttempts
    /// When the failure came that the next refill makes good for; nil while the budget is whole.
    private var refillsSince: Instant?
    /// Whether the budget was used up and has not been half full since: an attack is told of once.
    private var hasAlarmed = false

    /// - Returns: nil, or how many whole seconds until the next attempt is allowed, at least 1.
    mutating func retryAfter(at now: Instant) -> Int? {
        refill(at: now)
        guard failuresLeft == 0, let refillsSince else { return nil }
        let left = refillsSince + ProtocolLimits.failedAttemptRefill - now
        return max(1, Int(left.components.seconds) + (left.components.attoseconds > 0 ? 1 : 0))
    }

    /// - Returns: whether the budget is used up by this one, and that is news.
    mutating func failed(at now: Instant) -> Bool {
        refill(at: now)
        guard failuresLeft > 0 else { return false }
        if refillsSince == nil { refillsSince = now }
        failuresLeft -= 1
        guard failuresLeft == 0, !hasAlarmed else { return false }
        hasAlarmed = true
        return true
    }

    private mutating func refill(at now: Instant) {
        guard let since = refillsSince, now > since else { return }
        let step = ProtocolLimits.failedAttemptRefill
        let gained = Int(min((now - since) / step, Double(ProtocolLimits.failedAttempts)))
        failuresLeft = min(failuresLeft + gained, ProtocolLimits.failedAttempts)
        refillsSince = failuresLeft == ProtocolLimits.failedAttempts ? nil : since + step * gained
        if failuresLeft * 2 >= ProtocolLimits.failedAttempts { hasAlarmed = false }
    }
}

/// Which devices have failed, and how often: only to serve those first that have not. Bounded; the one whose last
/// failure is longest ago is forgotten first.
struct FailureTable: Sendable {
    private var failures: [PeerID: (count: Int, order: UInt64)] = [:]
    private var clock: UInt64 = 0

    var count: Int { failures.count }

    mutating func failed(_ peer: PeerID) {
        if failures[peer] == nil, failures.count >= ProtocolLimits.devicesWithFailures,
            let oldest = failures.min(by: { $0.value.order < $1.value.order })?.key
        {
            failures[oldest] = nil
        }
        clock += 1
        failures[peer] = ((failures[peer]?.count ?? 0) + 1, clock)
    }

    mutating func succeeded(_ peer: PeerID) {
        failures[peer] = nil
    }

    func failures(of peer: PeerID) -> Int {
        failures[peer]?.count ?? 0
    }
}
