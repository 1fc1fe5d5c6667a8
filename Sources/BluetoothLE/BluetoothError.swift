// SPDX-License-Identifier: MIT

/// What went wrong on a radio: one struct with an open list of codes.
public struct BluetoothError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. The list may grow: give a `switch` over it a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String {
            case adapterNotFound, poweredOff, unauthorized, serviceUnavailable, resetting
            case peerNotFound, connectionFailed, notConnected, disconnected
            case attributeNotFound, attributeError, notSupported, invalidArgument, busy
            case advertisingFailed, limitExceeded, timedOut, cancelled, internalFailure
        }

        private let value: Value

        private init(_ value: Value) { self.value = value }

        public var description: String { value.rawValue }

        /// No adapter, or not the one asked for.
        public static let adapterNotFound = Self(.adapterNotFound)
        /// The adapter is off, or blocked by rfkill.
        public static let poweredOff = Self(.poweredOff)
        /// The system does not let this user use Bluetooth.
        public static let unauthorized = Self(.unauthorized)
        /// No Bluetooth service to talk to: no bus, or nothing that owns `org.bluez`.
        public static let serviceUnavailable = Self(.serviceUnavailable)
        /// The Bluetooth service went away in the middle of an operation.
        public static let resetting = Self(.resetting)
        /// The radio no longer knows this device: scan again.
        public static let peerNotFound = Self(.peerNotFound)
        /// No link came about.
        public static let connectionFailed = Self(.connectionFailed)
        /// The operation needs a link, and there is none.
        public static let notConnected = Self(.notConnected)
        /// The link went down in the middle of an operation.
        public static let disconnected = Self(.disconnected)
        /// The peer has no such service or characteristic.
        public static let attributeNotFound = Self(.attributeNotFound)
        /// The peer refused with an ATT error: see `att`.
        public static let attributeError = Self(.attributeError)
        /// The adapter or the attribute cannot do this.
        public static let notSupported = Self(.notSupported)
        /// The caller's argument is wrong.
        public static let invalidArgument = Self(.invalidArgument)
        /// Another operation is in the way.
        public static let busy = Self(.busy)
        /// The advertisement was refused, even in its smallest form.
        public static let advertisingFailed = Self(.advertisingFailed)
        /// A bound of ours or of the system is reached.
        public static let limitExceeded = Self(.limitExceeded)
        public static let timedOut = Self(.timedOut)
        /// The caller's task was cancelled.
        public static let cancelled = Self(.cancelled)
        /// Something that should not happen; `cause` has the system's words.
        public static let internalFailure = Self(.internalFailure)
    }

    public var code: Code
    /// What happened, in one sentence without a full stop.
    public var message: String
    /// What the user can do, in one sentence; `nil` where nothing is known to help.
    public var advice: String?
    /// The device or adapter concerned.
    public var subject: String?
    /// The peer's ATT error where `code` is `attributeError`.
    public var att: ATTError?
    /// The underlying system's own words, such as a D-Bus error's name and text.
    public var cause: String?

    public init(
        _ code: Code,
        _ message: String,
        advice: String? = nil,
        subject: String? = nil,
        att: ATTError? = nil,
        cause: String? = nil
    ) {
        self.code = code
        self.message = message
        self.advice = advice
        self.subject = subject
        self.att = att
        self.cause = cause
    }

    public static let cancelled = BluetoothError(.cancelled, "the operation was cancelled")

    public var description: String {
        var text = subject.map { "\(message) (\($0))" } ?? message
        if let cause { text += ": \(cause)" }
        if let advice { text += ". \(advice)" }
        return text
    }

    /// What an error of a room above says that this one has caused: its own words, those beneath, and the advice.
    package static func words(_ message: String, cause: BluetoothError?, advice: String?) -> String {
        var text = message
        if let cause, cause.message != message { text += ": \(cause.message)" }
        if let words = cause?.cause { text += " (\(words))" }
        if let advice = advice ?? cause?.advice { text += ". \(advice)" }
        return text
    }
}
