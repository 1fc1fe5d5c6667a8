// SPDX-License-Identifier: MIT

/// An object that others on the bus can call. Everything here is called on the connection's loop.
///
/// `Properties`, `Introspectable` and `Peer` are answered by the connection from ``interfaces``.
public protocol ExportedObject: AnyObject, Sendable {
    /// What the object offers. Read when it is exported; constant from then on.
    var interfaces: [ExportedInterface] { get }

    /// Answers a call, now or later, from any thread. Only methods that ``interfaces`` names arrive here, with arguments
    /// of the right signature.
    func handle(_ call: MethodCall)

    /// The value of a readable property; nil if the object does not have it at present.
    func property(_ name: String, of interface: String) -> DBusValue?

    /// Sets a writable property to a value of the right signature.
    ///
    /// - Returns: nil if done, else the error to answer. `PropertiesChanged` is the object's business.
    func setProperty(_ name: String, of interface: String, to value: DBusValue) -> DBusError?
}

extension ExportedObject {
    public func handle(_ call: MethodCall) {
        call.fail(name: ErrorName.notSupported, message: "\(call.member) is not supported")
    }

    public func property(_ name: String, of interface: String) -> DBusValue? { nil }

    public func setProperty(_ name: String, of interface: String, to value: DBusValue) -> DBusError? {
        DBusError(name: ErrorName.propertyReadOnly, message: "\(name) cannot be set")
    }
}

/// An interface of an exported object. Names and signatures are checked when the object is exported.
public struct ExportedInterface: Sendable, Hashable {
    public struct Method: Sendable, Hashable {
        public let name: String
        public let input: Signature
        public let output: Signature
        /// Names of the arguments for introspection, input first; may be shorter than the list of arguments.
        public let argumentNames: [String]
        /// Whether callers need not wait for an answer.
        public let noReply: Bool

        public init(
            _ name: String, _ input: Signature = "", returns output: Signature = "", argumentNames: [String] = [],
            noReply: Bool = false
        ) {
            self.name = name
            self.input = input
            self.output = output
            self.argumentNames = argumentNames
            self.noReply = noReply
        }
    }

    public struct Signal: Sendable, Hashable {
        public let name: String
        public let signature: Signature

        public init(_ name: String, _ signature: Signature = "") {
            self.name = name
            self.signature = signature
        }
    }

    public struct Property: Sendable, Hashable {
        public enum Access: String, Sendable, Hashable {
            case read, write
            case readWrite = "readwrite"
        }

        /// What `org.freedesktop.DBus.Property.EmitsChangedSignal` says.
        public enum ChangeSignal: String, Sendable, Hashable {
            case withValue = "true"
            case invalidates
            case constant = "const"
            case none = "false"
        }

        public let name: String
        public let signature: Signature
        public let access: Access
        public let emitsChange: ChangeSignal

        public init(
            _ name: String, _ signature: Signature, access: Access = .read, emitsChange: ChangeSignal = .withValue
        ) {
            self.name = name
            self.signature = signature
            self.access = access
            self.emitsChange = emitsChange
        }
    }

    public let name: String
    public let methods: [Method]
    public let signals: [Signal]
    public let properties: [Property]

    public init(_ name: String, methods: [Method] = [], signals: [Signal] = [], properties: [Property] = []) {
        self.name = name
        self.methods = methods
        self.signals = signals
        self.properties = properties
    }

    func check() throws(DBusError) {
        guard Names.isInterface(name) else { throw DBusError(.invalidArgument, "not an interface name: \(name)") }
        guard !StandardInterface.all.contains(name) else {
            throw DBusError(.invalidArgument, "\(name) is answered by the connection itself")
        }
        try Names.checkNotReserved(interface: name)
        for member in methods.map(\.name) + signals.map(\.name) + properties.map(\.name)
        where !Names.isMember(member) {
            throw DBusError(.invalidArgument, "not a member name: \(name).\(member)")
        }
        for property in properties where !property.signature.isSingle {
            throw DBusError(.invalidArgument, "a property is of one type: \(name).\(property.name)")
        }
    }
}

/// Interfaces that the connection answers itself.
enum StandardInterface {
    static let properties = "org.freedesktop.DBus.Properties"
    static let introspectable = "org.freedesktop.DBus.Introspectable"
    static let objectManager = "org.freedesktop.DBus.ObjectManager"
    static let peer = "org.freedesktop.DBus.Peer"
    static let bus = "org.freedesktop.DBus"
    static let busPath: ObjectPath = "/org/freedesktop/DBus"
    static let local = "org.freedesktop.DBus.Local"
    static let localPath: ObjectPath = "/org/freedesktop/DBus/Local"
    static let all: Set<String> = [properties, introspectable, objectManager, peer]
}
