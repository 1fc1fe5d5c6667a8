// SPDX-License-Identifier: MIT

/// A message as it was received. It is a copy: nothing of libdbus is held.
public struct DBusMessage: Sendable, Hashable {
    public enum Kind: UInt8, Sendable, Hashable {
        case methodCall = 1
        case methodReturn = 2
        case error = 3
        case signal = 4
    }

    public let kind: Kind
    public let serial: UInt32
    /// The serial of the call that this answers.
    public let replySerial: UInt32?
    /// The unique name of the sender, which the bus vouches for; `org.freedesktop.DBus` for the bus itself.
    public let sender: String?
    public let destination: String?
    public let path: ObjectPath?
    public let interface: String?
    public let member: String?
    public let errorName: String?
    public let noReplyExpected: Bool
    public let signature: Signature
    public internal(set) var body: [DBusValue]

    package init(
        kind: Kind,
        serial: UInt32 = 0,
        replySerial: UInt32? = nil,
        sender: String? = nil,
        destination: String? = nil,
        path: ObjectPath? = nil,
        interface: String? = nil,
        member: String? = nil,
        errorName: String? = nil,
        noReplyExpected: Bool = false,
        body: [DBusValue] = [],
        signature: Signature? = nil
    ) {
        self.kind = kind
        self.serial = serial
        self.replySerial = replySerial
        self.sender = sender
        self.destination = destination
        self.path = path
        self.interface = interface
        self.member = member
        self.errorName = errorName
        self.noReplyExpected = noReplyExpected
        self.body = body
        self.signature = signature ?? Signature(trusted: body.map { $0.signature.string }.joined())
    }
}
