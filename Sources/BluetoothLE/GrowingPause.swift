// SPDX-License-Identifier: MIT

/// What to wait before the same thing is tried again: twice as long from one failure to the next (exponential backoff).
package struct GrowingPause: Sendable {
    private let range: ClosedRange<Duration>
    private var current: Duration

    /// - Parameter range: the first pause, and the longest one.
    package init(_ range: ClosedRange<Duration>) {
        self.range = range
        current = range.lowerBound
    }

    /// The pause before the next attempt.
    package mutating func next() -> Duration {
        defer { current = min(current * 2, range.upperBound) }
        return current
    }

    /// After a success: the next failure is the first one again.
    package mutating func reset() {
        current = range.lowerBound
    }
}
