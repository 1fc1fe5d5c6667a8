// SPDX-License-Identifier: MIT

public import BluetoothLE

/// What went wrong in a session: one struct with an open list of codes.
public struct DeviceSessionError: Error, Sendable, Hashable {
    /// The kind of failure. The list may grow: give a `switch` over it a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String {
            case radioUnavailable, peerNotFound, connectionFailed, notConnected, disconnected
            case notReady, channelMissing, channelFailed, readFailed
            case busy, exclusiveMisuse, deviceRefused, writeFailed, timedOut
            case invalidState, invalidArgument, limitExceeded, cancelled, tornDown
        }

        private let value: Value

        private init(_ value: Value) { self.value = value }

        public var description: String { value.rawValue }

        /// The adapter cannot be used; `cause` says why.
        public static let radioUnavailable = Self(.radioUnavailable)
        /// The radio does not know this device (any more): scan again.
        public static let peerNotFound = Self(.peerNotFound)
        /// No link came about.
        public static let connectionFailed = Self(.connectionFailed)
        /// The call needs a link, and there is none.
        public static let notConnected = Self(.notConnected)
        /// The link went down, or was taken down, before the call had its result.
        public static let disconnected = Self(.disconnected)
        /// There is a link, and its characteristics are still being looked for: wait for the gate.
        public static let notReady = Self(.notReady)
        /// The device has none of the profile's channels.
        public static let channelMissing = Self(.channelMissing)
        /// The device has the channel, and would not let us use it.
        public static let channelFailed = Self(.channelFailed)
        /// The device did not let us read a value.
        public static let readFailed = Self(.readFailed)
        /// Something else is on the channel.
        public static let busy = Self(.busy)
        /// An exclusive session inside another, beside another, or after its end.
        public static let exclusiveMisuse = Self(.exclusiveMisuse)
        /// The device answered with an error line: see `lines`.
        public static let deviceRefused = Self(.deviceRefused)
        /// The bytes could not be sent.
        public static let writeFailed = Self(.writeFailed)
        /// The time was up; `lines` has what had come by then.
        public static let timedOut = Self(.timedOut)
        /// The call does not fit what the session does at the moment.
        public static let invalidState = Self(.invalidState)
        /// The caller's argument is wrong; the message names it.
        public static let invalidArgument = Self(.invalidArgument)
        /// A bound of this room is reached; the message names it.
        public static let limitExceeded = Self(.limitExceeded)
        /// The caller's task was cancelled.
        public static let cancelled = Self(.cancelled)
        /// `teardown()` was called.
        public static let tornDown = Self(.tornDown)
    }

    public var code: Code
    /// What happened, in one sentence without a full stop.
    public var message: String
    /// What the user or the caller can do, in one sentence; `nil` where nothing is known to help.
    public var advice: String?
    /// The radio's error beneath.
    public var cause: BluetoothError?
    /// The lines of the response that had come, an error line included. They are a stranger's text.
    public var lines: [String]

    public init(
        _ code: Code,
        _ message: String,
        advice: String? = nil,
        cause: BluetoothError? = nil,
        lines: [String] = []
    ) {
        self.code = code
        self.message = message
        self.advice = advice
        self.cause = cause
        self.lines = lines
    }
}

extension DeviceSessionError: CustomStringConvertible {
    public var description: String { BluetoothError.words(message, cause: cause, advice: advice) }
}

extension DeviceSessionError {
    static let cancelled = DeviceSessionError(.cancelled, "the operation was cancelled")
    static let tornDown = DeviceSessionError(
        .tornDown, "the session has ended", advice: "Make a new one: an end is final.")
    static let notConnected = DeviceSessionError(
        .notConnected, "there is no connection to a device", advice: "Connect first.")
    static let notReady = DeviceSessionError(
        .notReady,
        "the device's characteristics are still being looked for",
        advice: "Wait for it: `waitUntil(.commandReady, timeout:)`."
    )
    /// We took the link down.
    static let closed = DeviceSessionError(.disconnected, "the connection was ended")

    /// What a radio says, in this room's words.
    init(radio error: BluetoothError, otherwise code: Code) {
        let own: Code =
            switch error.code {
            case .adapterNotFound, .poweredOff, .unauthorized, .serviceUnavailable, .resetting: .radioUnavailable
            case .peerNotFound: .peerNotFound
            case .notConnected, .disconnected: .disconnected
            case .cancelled: .cancelled
            case .timedOut: .timedOut
            case .limitExceeded: .limitExceeded
            default: code
            }
        self.init(own, error.message, advice: error.advice, cause: error)
    }
}
