// SPDX-License-Identifier: MIT

/// What a session does about a link that was lost.
public struct ReconnectionPolicy: Sendable, Hashable {
    /// 0 to 1,000; 0: none.
    public let attempts: Int
    /// Ahead of the first attempt.
    public let initialPause: Duration
    /// Each pause is so many times as long as the one before, 1 to 10.
    public let factor: Double
    public let longestPause: Duration

    private init(attempts: Int, initialPause: Duration, factor: Double, longestPause: Duration) {
        self.attempts = min(max(attempts, 0), Limits.reconnections)
        self.initialPause = initialPause.bounded
        self.factor = factor.isFinite ? min(max(factor, 1), 10) : 1
        self.longestPause = longestPause.bounded
    }

    /// A lost link is a failure.
    public static let off = Self(attempts: 0, initialPause: .zero, factor: 1, longestPause: .zero)

    /// Tries to connect again, so many times for each loss.
    ///
    /// While the adapter is away no attempt is made, and one that its going has ended does not count: the session waits
    /// for it without a limit of time, as `DeviceSession.connectInterruption` says.
    ///
    /// - Parameters:
    ///   - number: 1 to 1,000; what is outside is taken for the nearer end.
    ///   - initialPause: Ahead of the first attempt.
    ///   - factor: How much longer each pause is than the one before, 1 to 10.
    public static func attempts(
        _ number: Int,
        initialPause: Duration = .milliseconds(500),
        factor: Double = 2,
        longestPause: Duration = .seconds(30)
    ) -> Self {
        Self(attempts: max(number, 1), initialPause: initialPause, factor: factor, longestPause: longestPause)
    }

    /// The pause ahead of an attempt, counted from 1; `nil`: there is none left.
    func pause(before attempt: Int) -> Duration? {
        guard attempt >= 1, attempt <= attempts else { return nil }
        var pause = initialPause
        for _ in 1..<attempt {
            if pause >= longestPause { break }
            pause = pause * factor
        }
        return min(pause, longestPause)
    }
}
