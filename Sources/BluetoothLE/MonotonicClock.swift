// SPDX-License-Identifier: MIT

/// The clock that a radio and everything above it measure with.
///
/// `ContinuousClock` is the real one; a simulated radio brings one that a test advances by hand. Both speak the
/// standard library's instants, so a deadline is one type everywhere.
public protocol MonotonicClock: Clock where Duration == Swift.Duration, Instant == ContinuousClock.Instant {}

extension ContinuousClock: MonotonicClock {}
