// SPDX-License-Identifier: MIT

public import BluetoothLE
public import NearbyProtocol

/// The one error of the framework: an open list of codes, a message, the advice, the cause.
public struct NearbyError: Error, Sendable, Hashable {
    /// The kind of failure. The list may grow: give a `switch` over it a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String {
            case invalidConfiguration, payloadTooLarge
            case adapterNotFound, poweredOff, unauthorized, serviceUnavailable
            case nothingFound, rejected, linkFailed, advertisingFailed
            case securityRequired, wrongPasscode
            case cancelled, internalFailure
        }

        private let value: Value

        private init(_ value: Value) { self.value = value }

        /// The name that `nearby --json` prints.
        public var description: String { value.rawValue }

        /// A setting makes no sense; the message names it.
        public static let invalidConfiguration = Self(.invalidConfiguration)
        /// The payload fits no profile that the host offers; the message has the number of bytes over.
        public static let payloadTooLarge = Self(.payloadTooLarge)
        /// No Bluetooth adapter, or not the one asked for.
        public static let adapterNotFound = Self(.adapterNotFound)
        /// The adapter is off or blocked.
        public static let poweredOff = Self(.poweredOff)
        /// The system does not let this user use Bluetooth.
        public static let unauthorized = Self(.unauthorized)
        /// The Bluetooth service does not answer, has no room for more, or is busy.
        public static let serviceUnavailable = Self(.serviceUnavailable)
        /// The time was up and no host of this app had been near enough; `encounters` counts what was met.
        public static let nothingFound = Self(.nothingFound)
        /// The host said no; see `rejection`.
        public static let rejected = Self(.rejected)
        /// A host of this app was met, and the exchange with it failed until the time was up.
        public static let linkFailed = Self(.linkFailed)
        /// The system would not advertise, even in the smallest form.
        public static let advertisingFailed = Self(.advertisingFailed)
        /// The host and the client do not agree on the protection: a passcode is missing, or the host knows none. The
        /// client has sent nothing.
        public static let securityRequired = Self(.securityRequired)
        /// The host did not accept the passcode.
        public static let wrongPasscode = Self(.wrongPasscode)
        /// The caller's task was cancelled, or the client was stopped.
        public static let cancelled = Self(.cancelled)
        /// Something that should not happen; please report it with `cause` and `detail`.
        public static let internalFailure = Self(.internalFailure)
    }

    /// A host's no.
    public struct Rejection: Sendable, Hashable {
        /// The reason, kept as received even if it is not one of ours. `nil` for a bare ATT error.
        public var reason: RejectReason?
        /// The host's words for a person, if it sent any. They are a stranger's: show them as such.
        public var message: String?
        /// The ATT error code where the host refused the write itself, as older hosts do.
        public var attError: UInt8?
        /// How far it can be trusted: a reject in plain text may be anybody's.
        public var security: MessageSecurity
        /// When to try again, where the host said so.
        public var retryAfter: Duration?

        public init(
            reason: RejectReason?,
            message: String? = nil,
            attError: UInt8? = nil,
            security: MessageSecurity = .plaintext,
            retryAfter: Duration? = nil
        ) {
            self.reason = reason
            self.message = message
            self.attError = attError
            self.security = security
            self.retryAfter = retryAfter
        }
    }

    public var code: Code
    /// What happened and to whom, in one sentence without a full stop.
    public var message: String
    /// What the user can do, in one sentence; `nil` where nothing is known to help.
    public var advice: String?
    public var cause: BluetoothError?
    public var rejection: Rejection?
    public var encounters: Encounters?
    /// With `securityRequired`: the host wants a passcode and none was given. Ask for it, and join with a new client.
    public var isPasscodeNeeded = false
    /// Words for a bug report.
    public var detail: String?

    public init(
        _ code: Code,
        _ message: String,
        advice: String? = nil,
        cause: BluetoothError? = nil,
        rejection: Rejection? = nil,
        encounters: Encounters? = nil,
        detail: String? = nil
    ) {
        self.code = code
        self.message = message
        self.advice = advice
        self.cause = cause
        self.rejection = rejection
        self.encounters = encounters
        self.detail = detail
    }
}

extension NearbyError: CustomStringConvertible {
    public var description: String { BluetoothError.words(message, cause: cause, advice: advice) }
}

extension NearbyError {
    static let cancelled = NearbyError(.cancelled, "the operation was cancelled")

    /// A radio's error in the framework's words: the code tells what the app can do about it. Not for links; what goes wrong
    /// with those is a `ClientFailure`.
    init(_ error: BluetoothError) {
        let code: Code =
            switch error.code {
            case .adapterNotFound, .notSupported: .adapterNotFound
            case .poweredOff: .poweredOff
            case .unauthorized: .unauthorized
            case .serviceUnavailable, .resetting, .timedOut: .serviceUnavailable
            case .advertisingFailed: .advertisingFailed
            case .invalidArgument: .invalidConfiguration
            case .cancelled: .cancelled
            case .internalFailure: .internalFailure
            // It is there, and has no room or is busy.
            default: .serviceUnavailable
            }
        self.init(code, error.message, advice: error.advice, cause: error)
    }
}
