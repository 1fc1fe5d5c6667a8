// SPDX-License-Identifier: MIT

/// What a session tells. The list may grow: give a `switch` over it a `default`.
public enum DeviceEvent: Sendable, Hashable {
    case connectionStateChanged(SessionState)
    /// Every line that the device sends, of responses, too.
    case line(DeviceLine)
    case sendFinished(SendReport)
    /// A frame's payload (behind its header), or a packet where the profile has no frames.
    case payload([UInt8], PayloadMeta)
    /// What looked like a frame and failed its checksum, or lacked its end: all its bytes.
    case crcError([UInt8])
    /// A packet as the device sent it, before the codec. It comes ahead of what is made of it.
    case raw([UInt8])

    /// For observers: what kinds of events they want.
    public struct Kinds: OptionSet, Sendable, Hashable {
        public let rawValue: UInt32

        public init(rawValue: UInt32) { self.rawValue = rawValue }

        public static let connectionStateChanged = Self(rawValue: 1 << 0)
        public static let line = Self(rawValue: 1 << 1)
        public static let sendFinished = Self(rawValue: 1 << 2)
        public static let payload = Self(rawValue: 1 << 3)
        public static let crcError = Self(rawValue: 1 << 4)
        public static let raw = Self(rawValue: 1 << 5)
        public static let all = Self(rawValue: .max)
    }

    public var kind: Kinds {
        switch self {
        case .connectionStateChanged: .connectionStateChanged
        case .line: .line
        case .sendFinished: .sendFinished
        case .payload: .payload
        case .crcError: .crcError
        case .raw: .raw
        }
    }
}

public struct DeviceLine: Sendable, Hashable {
    /// Without its end. A stranger's text.
    public let text: String
    /// Whether it belongs to a command's response, its echo and its final line included.
    public let isResponse: Bool

    public init(_ text: String, isResponse: Bool) {
        self.text = text
        self.isResponse = isResponse
    }
}

/// What became of something that was sent.
public struct SendReport: Sendable, Hashable {
    public let id: SendID
    /// Bytes of the message, before frame and codec.
    public let bytes: Int
    /// `nil`: the radio has taken all of it.
    public let error: DeviceSessionError?
}

/// Names one message that was sent.
public struct SendID: Sendable, Hashable, CustomStringConvertible {
    public let rawValue: UInt64

    public var description: String { String(rawValue) }
}

public struct PayloadMeta: Sendable, Hashable {
    /// dBm, the last reading of the scan that found the device: a link has none of its own in this contract.
    public let rssi: Int?
    /// On the radio's clock.
    public let time: ContinuousClock.Instant
}
