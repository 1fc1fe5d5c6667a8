// SPDX-License-Identifier: MIT

/// How many lines a peer may send: so many a second, and so many at once after a rest.
package struct LineRate: Sendable, Hashable {
    package var perSecond: Double
    package var burst: Double

    package init(perSecond: Double, burst: Double) {
        self.perSecond = perSecond
        self.burst = burst
    }
}

/// Counts lines against a rate. Who is over it is not cut off but read later, which TCP passes on to the sender.
struct LineAllowance {
    private let rate: LineRate
    private var tokens: Double
    private var filled: ContinuousClock.Instant

    init(_ rate: LineRate, at now: ContinuousClock.Instant) {
        self.rate = rate
        tokens = rate.burst
        filled = now
    }

    /// - Returns: until when nothing more is to be read; `nil`: go on.
    mutating func spend(_ lines: Int, at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        tokens = min(rate.burst, tokens + filled.duration(to: now) / .seconds(1) * rate.perSecond)
        filled = now
        tokens -= Double(lines)
        guard tokens < 0 else { return nil }
        return now.advanced(by: .seconds(-tokens / rate.perSecond))
    }
}
