// SPDX-License-Identifier: MIT

import CDBus

/// Turns the body of a libdbus message into values. libdbus has validated the bytes: strings are UTF-8 without NUL,
/// paths and signatures are well formed, nesting is bounded. What is left to bound is how much memory it becomes.
struct MessageReader {
    private var budget = Limits.decodedValues

    /// - Throws: ``DBusError/Code/limitExceeded``.
    static func body(of message: OpaquePointer) throws(DBusError) -> [DBusValue] {
        var iterator = DBusMessageIter()
        guard dbus_message_iter_init(message, &iterator) != 0 else { return [] }
        var reader = MessageReader()
        return try reader.values(&iterator)
    }

    /// - Throws: ``DBusError/Code/limitExceeded``.
    static func message(_ raw: OpaquePointer) throws(DBusError) -> DBusMessage {
        var message = head(raw)
        message.body = try body(of: raw)
        return message
    }

    /// A message without its body.
    static func head(_ raw: OpaquePointer) -> DBusMessage {
        let replySerial = dbus_message_get_reply_serial(raw)
        return DBusMessage(
            kind: DBusMessage.Kind(rawValue: UInt8(clamping: dbus_message_get_type(raw))) ?? .signal,
            serial: dbus_message_get_serial(raw),
            replySerial: replySerial == 0 ? nil : replySerial,
            sender: text(dbus_message_get_sender(raw)),
            destination: text(dbus_message_get_destination(raw)),
            path: text(dbus_message_get_path(raw)).map { ObjectPath(trusted: $0) },
            interface: text(dbus_message_get_interface(raw)),
            member: text(dbus_message_get_member(raw)),
            errorName: text(dbus_message_get_error_name(raw)),
            noReplyExpected: dbus_message_get_no_reply(raw) != 0,
            signature: Signature(trusted: text(dbus_message_get_signature(raw)) ?? "")
        )
    }

    static func text(_ pointer: UnsafePointer<CChar>?) -> String? {
        pointer.map { String(cString: $0) }
    }

    private mutating func spend(_ count: Int) throws(DBusError) {
        budget -= count
        guard budget >= 0 else {
            throw DBusError(.limitExceeded, "a message of more than \(Limits.decodedValues) values")
        }
    }

    private mutating func values(_ iterator: inout DBusMessageIter) throws(DBusError) -> [DBusValue] {
        var found: [DBusValue] = []
        while true {
            let type = dbus_message_iter_get_arg_type(&iterator)
            guard type != 0 else { return found }
            found.append(try value(&iterator, UInt8(truncatingIfNeeded: type)))
            dbus_message_iter_next(&iterator)
        }
    }

    private mutating func value(_ iterator: inout DBusMessageIter, _ type: UInt8) throws(DBusError) -> DBusValue {
        try spend(1)
        switch type {
        case UInt8(ascii: "y"): return .byte(basic(&iterator, 0))
        case UInt8(ascii: "b"): return .bool(basic(&iterator, dbus_bool_t(0)) != 0)
        case UInt8(ascii: "n"): return .int16(basic(&iterator, 0))
        case UInt8(ascii: "q"): return .uint16(basic(&iterator, 0))
        case UInt8(ascii: "i"): return .int32(basic(&iterator, 0))
        case UInt8(ascii: "u"): return .uint32(basic(&iterator, 0))
        case UInt8(ascii: "x"): return .int64(basic(&iterator, 0))
        case UInt8(ascii: "t"): return .uint64(basic(&iterator, 0))
        case UInt8(ascii: "d"): return .double(basic(&iterator, 0))
        case UInt8(ascii: "s"): return .string(string(&iterator))
        case UInt8(ascii: "o"): return .objectPath(ObjectPath(trusted: string(&iterator)))
        case UInt8(ascii: "g"): return .signature(Signature(trusted: string(&iterator)))
        case UInt8(ascii: "h"): return .unixFD(try descriptor(&iterator))
        case UInt8(ascii: "a"): return try array(&iterator)
        case UInt8(ascii: "v"):
            var inner = DBusMessageIter()
            dbus_message_iter_recurse(&iterator, &inner)
            let type = dbus_message_iter_get_arg_type(&inner)
            return .variant(try value(&inner, UInt8(truncatingIfNeeded: type)))
        case UInt8(ascii: "r"):
            var inner = DBusMessageIter()
            dbus_message_iter_recurse(&iterator, &inner)
            return .structure(try values(&inner))
        default:
            throw DBusError(.signatureMismatch, "a type that D-Bus does not have: \(type)")
        }
    }

    private func basic<T: BitwiseCopyable>(_ iterator: inout DBusMessageIter, _ initial: T) -> T {
        var value = initial
        dbus_message_iter_get_basic(&iterator, &value)
        return value
    }

    /// libdbus gives a copy of the descriptor, which is ours to close.
    private func descriptor(_ iterator: inout DBusMessageIter) throws(DBusError) -> UnixFD {
        let number = basic(&iterator, Int32(-1))
        guard number >= 0 else {
            throw DBusError(.limitExceeded, "a file descriptor did not arrive: the process may have too many")
        }
        return UnixFD(owning: number)
    }

    private func string(_ iterator: inout DBusMessageIter) -> String {
        let pointer: UnsafePointer<CChar>? = basic(&iterator, nil)
        return pointer.map { String(cString: $0) } ?? ""
    }

    private mutating func array(_ iterator: inout DBusMessageIter) throws(DBusError) -> DBusValue {
        let type = UInt8(truncatingIfNeeded: dbus_message_iter_get_element_type(&iterator))
        var inner = DBusMessageIter()
        if type == UInt8(ascii: "y") {
            dbus_message_iter_recurse(&iterator, &inner)
            return .bytes(bytes(&inner))
        }
        let signature = elementSignature(&iterator, type)
        dbus_message_iter_recurse(&iterator, &inner)
        if type == UInt8(ascii: "e") { return try dictionary(&inner, signature) }
        var elements: [DBusValue] = []
        while dbus_message_iter_get_arg_type(&inner) != 0 {
            elements.append(try value(&inner, type))
            dbus_message_iter_next(&inner)
        }
        return .array(of: Signature(trusted: signature), elements)
    }

    private func bytes(_ inner: inout DBusMessageIter) -> [UInt8] {
        var start: UnsafePointer<UInt8>?
        var count: Int32 = 0
        dbus_message_iter_get_fixed_array(&inner, &start, &count)
        guard let start, count > 0 else { return [] }
        return Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }

    /// The signature of an array's elements; for those that are not containers without asking libdbus for a string.
    private func elementSignature(_ iterator: inout DBusMessageIter, _ type: UInt8) -> String {
        if SignatureParser.isBasic(type) || type == UInt8(ascii: "v") { return String(Unicode.Scalar(type)) }
        guard let pointer = dbus_message_iter_get_signature(&iterator) else { return "v" }
        defer { dbus_free(pointer) }
        return String(cString: pointer + 1)
    }

    private mutating func dictionary(
        _ inner: inout DBusMessageIter, _ signature: String
    ) throws(DBusError) -> DBusValue {
        var entries: [DBusEntry] = []
        while dbus_message_iter_get_arg_type(&inner) != 0 {
            var entry = DBusMessageIter()
            dbus_message_iter_recurse(&inner, &entry)
            let key = try value(&entry, UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(&entry)))
            dbus_message_iter_next(&entry)
            let content = try value(&entry, UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(&entry)))
            entries.append(DBusEntry(key, content))
            dbus_message_iter_next(&inner)
        }
        if signature == "{sv}" { return .dictionary(key: .string, value: .variant, entries) }
        let parts = signature.utf8.dropFirst().dropLast()
        return .dictionary(
            key: Signature(trusted: String(Substring(parts.prefix(1)))),
            value: Signature(trusted: String(Substring(parts.dropFirst()))),
            entries)
    }
}
