// SPDX-License-Identifier: MIT

/// What to do while the adapter cannot be used: missing, off, forbidden, or its service not running.
public enum UnavailablePolicy: Sendable, Hashable {
    /// End with the typed error unless the adapter becomes usable within this time of the start.
    ///
    /// It counts for the start only: an adapter that goes away later is waited for.
    case fail(after: Duration)
    /// Wait for it, as a service that starts with the machine does.
    case wait
}

extension Duration {
    /// Within what clocks can do: the standard library ends the process where a deadline is out of its range.
    var bounded: Duration { min(max(self, .zero), Limits.longest) }
}
