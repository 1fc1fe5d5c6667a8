// SPDX-License-Identifier: MIT

/// The bounds of this room.
enum Limits {
    /// Radio events and results that wait for a machine; a sender beyond that is suspended.
    static let inbox = 64
    /// Events kept for a slow reader of `events()`; the oldest go first.
    static let events = 128
    /// Readers of `events()` at a time.
    static let eventReaders = 32
    /// Admission decisions the app can be working on at a time, per host. The machine's own bound is not higher.
    static let admissions = 64
    /// Pause before a radio that says it can be used, and could not be, is tried again.
    static let tryAgain: Duration = .milliseconds(200)
    /// How long the choice of a radio waits for word of an adapter.
    static let adapterSearch: Duration = .seconds(3)
    /// What a radio may take to start a scan, before a search that ends without one blames the radio.
    static let scanStart: Duration = .seconds(3)
    /// The longest of an app's durations; a longer one means no more, and the standard library's arithmetic has an end.
    static let longest: Duration = .seconds(100 * 365 * 86_400)
    /// How long a host that ends goes on handing over what clients are to be told.
    static let farewell: Duration = .seconds(2)
    /// Hosts whose names a client remembers for the app's list; the machine's own bound is not higher.
    static let candidates = 256
}
