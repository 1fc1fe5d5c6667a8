// SPDX-License-Identifier: MIT

/// A line for whoever looks for a fault.
public struct SessionLogEntry: Sendable, Hashable {
    public enum Level: Int, Sendable, Hashable, Comparable {
        case debug, info, warning

        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    public let level: Level
    /// Escaped, so that it may be printed: controls and what is not ASCII stand as `\u{…}`.
    public let message: String
    /// On the radio's clock.
    public let time: ContinuousClock.Instant
}

/// Where a session's log goes. Called one entry at a time, in order; it shall return soon, for the session waits.
public protocol SessionLogger: Sendable {
    func log(_ entry: SessionLogEntry)
}

enum LogText {
    static func line(_ text: String) -> String {
        text.unicodeScalars.prefix(512).map { $0.escaped(asASCII: true) }.joined()
    }

    static func hex(_ bytes: [UInt8]) -> String {
        bytes.prefix(256).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
            + (bytes.count > 256 ? " …" : "")
    }
}
