// SPDX-License-Identifier: MIT

/// What went wrong on the bus.
public struct DBusError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of an error. The list is open: a later version may add kinds, so keep a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String, Sendable {
            case remote, timedOut, disconnected, cancelled, noBus, accessDenied, invalidArgument, signatureMismatch
            case limitExceeded, noReply, addressInUse, closed, internalFailure
        }

        private let kind: Kind

        /// The peer answered with an error; see ``DBusError/name``.
        public static let remote = Code(kind: .remote)
        /// No answer came within the caller's time limit.
        public static let timedOut = Code(kind: .timedOut)
        /// The connection to the bus is lost.
        public static let disconnected = Code(kind: .disconnected)
        /// The calling task was cancelled.
        public static let cancelled = Code(kind: .cancelled)
        /// There is no bus at the address, or it refused the connection.
        public static let noBus = Code(kind: .noBus)
        /// The bus or the peer does not permit it (`org.freedesktop.DBus.Error.AccessDenied`, or `EACCES`).
        public static let accessDenied = Code(kind: .accessDenied)
        /// A name, path, signature or value that D-Bus does not allow.
        public static let invalidArgument = Code(kind: .invalidArgument)
        /// An answer of another type than was asked for.
        public static let signatureMismatch = Code(kind: .signatureMismatch)
        /// More than a bound allows: message size, file descriptors in a message, pending calls, queued bytes.
        public static let limitExceeded = Code(kind: .limitExceeded)
        /// The bus says that the peer will not answer (`org.freedesktop.DBus.Error.NoReply`): it went away.
        public static let noReply = Code(kind: .noReply)
        /// The bus name is owned by somebody else.
        public static let addressInUse = Code(kind: .addressInUse)
        /// The connection was closed by this side.
        public static let closed = Code(kind: .closed)
        /// The operating system refused something (memory, threads).
        public static let internalFailure = Code(kind: .internalFailure)

        public var description: String { kind.rawValue }
    }

    /// The kind of error.
    public let code: Code
    /// The D-Bus error name, such as `org.bluez.Error.Failed`, when a peer or the bus answered with one.
    public let name: String?
    /// What happened, for people.
    public let message: String
    /// What can be done about it, for people.
    public let advice: String?

    public init(_ code: Code, _ message: String, name: String? = nil, advice: String? = nil) {
        self.code = code
        self.name = name
        self.message = message
        self.advice = advice
    }

    /// An error to answer a method call with.
    ///
    /// - Parameter name: a valid D-Bus error name; anything else is answered as `org.freedesktop.DBus.Error.Failed`.
    public init(name: String, message: String) {
        self.init(DBusError.code(forName: name), message, name: name)
    }

    /// Whether nobody owns the name that was called.
    public var isServiceUnknown: Bool {
        name == ErrorName.serviceUnknown || name == ErrorName.nameHasNoOwner
    }

    public var description: String {
        let prefix = name.map { "\($0): " } ?? ""
        let suffix = advice.map { " (\($0))" } ?? ""
        return "\(prefix)\(message)\(suffix)"
    }

    static func code(forName name: String) -> Code {
        switch name {
        case ErrorName.accessDenied: .accessDenied
        case ErrorName.noReply: .noReply
        default: .remote
        }
    }

    static let callCancelled = DBusError(.cancelled, "the call was cancelled")
    static let waitCancelled = DBusError(.cancelled, "the wait was cancelled")
    static let connectionLost = DBusError(.disconnected, "the connection to the bus is lost")
}

/// Error names of the D-Bus specification and its reference implementation.
public enum ErrorName {
    public static let failed = "org.freedesktop.DBus.Error.Failed"
    public static let accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
    public static let noReply = "org.freedesktop.DBus.Error.NoReply"
    public static let serviceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
    public static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
    public static let unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
    public static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
    public static let unknownInterface = "org.freedesktop.DBus.Error.UnknownInterface"
    public static let unknownProperty = "org.freedesktop.DBus.Error.UnknownProperty"
    public static let propertyReadOnly = "org.freedesktop.DBus.Error.PropertyReadOnly"
    public static let invalidArguments = "org.freedesktop.DBus.Error.InvalidArgs"
    public static let limitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded"
    public static let notSupported = "org.freedesktop.DBus.Error.NotSupported"
}
