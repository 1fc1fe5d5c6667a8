// SPDX-License-Identifier: MIT

import CDBus

/// A libdbus message that is being made. It owns one reference, released when it goes out of scope.
///
/// Each maker checks every argument first: libdbus ends the process on a wrong one, or a bus the connection.
struct RawMessage: ~Copyable {
    let pointer: OpaquePointer

    private init(_ pointer: OpaquePointer?) throws(DBusError) {
        guard let pointer else { throw DBusError(.internalFailure, "no memory for a message") }
        self.pointer = pointer
    }

    deinit {
        dbus_message_unref(pointer)
    }

    static func call(_ call: DBusCall) throws(DBusError) -> RawMessage {
        try check(call.destination, Names.isBusName, "bus name")
        try check(call.path, call.interface, call.member)
        let header = BodyCheck.headerBytes(
            path: call.path.string, interface: call.interface, member: call.member, destination: call.destination)
        try BodyCheck.check(call.body, header: header)
        let message = try RawMessage(
            dbus_message_new_method_call(call.destination, call.path.string, call.interface, call.member))
        try MessageWriter.append(call.body, to: message.pointer)
        return message
    }

    static func signal(
        _ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue], to destination: String?
    ) throws(DBusError) -> RawMessage {
        try check(path, interface, member)
        if let destination { try check(destination, Names.isBusName, "bus name") }
        let header = BodyCheck.headerBytes(
            path: path.string, interface: interface, member: member, destination: destination)
        try BodyCheck.check(body, header: header)
        let message = try RawMessage(dbus_message_new_signal(path.string, interface, member))
        if let destination { try message.set(dbus_message_set_destination(message.pointer, destination)) }
        try MessageWriter.append(body, to: message.pointer)
        return message
    }

    private static func check(
        _ path: ObjectPath, _ interface: String, _ member: String
    ) throws(DBusError) {
        try check(interface, Names.isInterface, "interface name")
        try check(member, Names.isMember, "member name")
        try Names.checkNotReserved(path: path)
        try Names.checkNotReserved(interface: interface)
    }

    /// An answer to a call with this serial from this sender (nil on a connection without a bus).
    static func reply(
        to serial: UInt32, _ sender: String?, _ body: [DBusValue]
    ) throws(DBusError) -> RawMessage {
        try BodyCheck.check(body, header: BodyCheck.headerBytes(destination: sender))
        let message = try answer(.methodReturn, serial, sender)
        try MessageWriter.append(body, to: message.pointer)
        return message
    }

    static func failure(to serial: UInt32, _ sender: String?, _ error: DBusError) throws(DBusError) -> RawMessage {
        let message = try answer(.error, serial, sender)
        let name = error.name.flatMap { Names.isInterface($0) ? $0 : nil } ?? ErrorName.failed
        try message.set(dbus_message_set_error_name(message.pointer, name))
        let text = String(decoding: error.message.utf8.prefix { $0 != 0 }, as: UTF8.self)
        try MessageWriter.append([.string(text.clipped(toBytes: Limits.errorTextBytes))], to: message.pointer)
        return message
    }

    private static func answer(
        _ kind: DBusMessage.Kind, _ serial: UInt32, _ sender: String?
    ) throws(DBusError) -> RawMessage {
        guard serial != 0 else { throw DBusError(.invalidArgument, "no serial to answer") }
        let message = try RawMessage(dbus_message_new(Int32(kind.rawValue)))
        try message.set(dbus_message_set_reply_serial(message.pointer, serial))
        dbus_message_set_no_reply(message.pointer, 1)
        if let sender {
            try check(sender, Names.isBusName, "bus name")
            try message.set(dbus_message_set_destination(message.pointer, sender))
        }
        return message
    }

    private borrowing func set(_ result: dbus_bool_t) throws(DBusError) {
        guard result != 0 else { throw DBusError(.internalFailure, "no memory for a message") }
    }

    private static func check(_ text: String, _ isValid: (String) -> Bool, _ what: String) throws(DBusError) {
        guard isValid(text) else {
            throw DBusError(.invalidArgument, "not a valid \(what): \(text.clipped(toBytes: Limits.quotedBytes))")
        }
    }
}
