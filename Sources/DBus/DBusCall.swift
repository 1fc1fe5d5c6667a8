// SPDX-License-Identifier: MIT

/// A method call to be sent.
public struct DBusCall: Sendable, Hashable {
    public var destination: String
    public var path: ObjectPath
    public var interface: String
    public var member: String
    public var body: [DBusValue]
    /// The signature the answer must have; nil takes any.
    public var returning: String?
    /// How long to wait for the answer, more than zero.
    public var timeout: Duration

    public init(
        _ destination: String,
        _ path: ObjectPath,
        _ interface: String,
        _ member: String,
        _ body: [DBusValue] = [],
        returning: String? = nil,
        timeout: Duration = .seconds(25)
    ) {
        self.destination = destination
        self.path = path
        self.interface = interface
        self.member = member
        self.body = body
        self.returning = returning
        self.timeout = timeout
    }
}
