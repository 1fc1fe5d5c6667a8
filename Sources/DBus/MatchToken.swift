// SPDX-License-Identifier: MIT

/// A subscription. It lasts until it is cancelled or the connection ends; letting go of the token changes nothing.
public final class MatchToken: Sendable {
    private let cancellation: @Sendable () -> Void

    package init(_ cancellation: @escaping @Sendable () -> Void) {
        self.cancellation = cancellation
    }

    /// Ends the subscription. Called on the loop, the handler is certain not to be called again.
    public func cancel() {
        cancellation()
    }
}
