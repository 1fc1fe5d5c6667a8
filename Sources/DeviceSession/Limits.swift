// SPDX-License-Identifier: MIT

/// The bounds of this room.
enum Limits {
    /// Devices that a scan keeps in view; the one that has been silent longest makes room.
    static let scanResults = 256
    /// Bytes of one line; a longer one comes in pieces.
    static let lineBytes = 4_096
    /// Lines of one response.
    static let responseLines = 1_024
    /// Bytes of one response.
    static let responseBytes = 256 * 1_024
    /// Bytes of one command line, with its end.
    static let commandBytes = 4_096
    /// Bytes of one payload.
    static let payloadBytes = 65_536
    /// Calls that wait for the channel.
    static let waitingCalls = 64
    /// Calls that wait for a gate.
    static let gateWaiters = 64
    /// Events kept for a slow reader of a stream; the oldest go first.
    static let events = 256
    /// Streams of one kind at a time.
    static let streams = 32
    /// Observers of one session.
    static let observers = 64
    /// Attempts of a reconnection policy.
    static let reconnections = 1_000
    /// The longest attribute value, and so the longest packet (Core Specification, Vol 3, Part F, 3.2.9).
    static let packetBytes = 512
    /// What fits a packet where the radio does not tell its ATT MTU: 23 less 3 (Vol 3, Part G, 5.2.1).
    static let smallestPacket = 20
    /// Bytes of a key of `XORCodec`.
    static let keyBytes = 256
    /// Patterns in one list of a profile.
    static let patterns = 64
    /// How long a device may go on talking after a call was given up, before the next one has its turn all the same.
    static let drain: Duration = .seconds(3)
    /// How long a radio may not know its adapter's state before an attempt to connect has to find it out.
    static let unknownAdapter: Duration = .seconds(10)
    /// The longest of an app's durations: the standard library's arithmetic has an end.
    static let longest: Duration = .seconds(100 * 365 * 86_400)
}

extension Duration {
    /// Within what clocks can do: the standard library ends the process where a deadline is out of its range.
    var bounded: Duration { min(max(self, .zero), Limits.longest) }
}
