// SPDX-License-Identifier: MIT

import CDBus

/// Puts values that ``BodyCheck`` has passed into a libdbus message.
enum MessageWriter {
    /// - Throws: ``DBusError/Code/internalFailure`` if memory is short, ``DBusError/Code/invalidArgument`` for a file
    ///   descriptor that is not open.
    static func append(_ body: [DBusValue], to message: OpaquePointer) throws(DBusError) {
        guard !body.isEmpty else { return }
        var iterator = DBusMessageIter()
        dbus_message_iter_init_append(message, &iterator)
        for value in body {
            guard append(value, &iterator) else {
                throw DBusError(.internalFailure, "a value could not be added: no memory, or a closed descriptor")
            }
        }
    }

    private static func append(_ value: DBusValue, _ iterator: inout DBusMessageIter) -> Bool {
        switch value {
        case .byte(let number): basic(number, value.typeCode, &iterator)
        case .bool(let flag): basic(dbus_bool_t(flag ? 1 : 0), value.typeCode, &iterator)
        case .int16(let number): basic(number, value.typeCode, &iterator)
        case .uint16(let number): basic(number, value.typeCode, &iterator)
        case .int32(let number): basic(number, value.typeCode, &iterator)
        case .uint32(let number): basic(number, value.typeCode, &iterator)
        case .int64(let number): basic(number, value.typeCode, &iterator)
        case .uint64(let number): basic(number, value.typeCode, &iterator)
        case .double(let number): basic(number, value.typeCode, &iterator)
        // libdbus makes its own copy of the descriptor.
        case .unixFD(let descriptor): basic(descriptor.number, value.typeCode, &iterator)
        case .string(let text): text.withCString { basic($0, UInt8(ascii: "s"), &iterator) }
        case .objectPath(let path): path.string.withCString { basic($0, UInt8(ascii: "o"), &iterator) }
        case .signature(let signature): signature.string.withCString { basic($0, UInt8(ascii: "g"), &iterator) }
        case .bytes(let content): append(content, &iterator)
        case .array(of: let element, let elements):
            container("a", element.string, &iterator) { inner in
                elements.allSatisfy { append($0, &inner) }
            }
        case .dictionary(key: let key, value: let type, let entries):
            container("a", "{\(key.string)\(type.string)}", &iterator) { inner in
                entries.allSatisfy { entry in
                    container("e", nil, &inner) { append(entry.key, &$0) && append(entry.value, &$0) }
                }
            }
        case .structure(let members):
            container("r", nil, &iterator) { inner in
                members.allSatisfy { append($0, &inner) }
            }
        case .variant(let inner):
            container("v", inner.signature.string, &iterator) { append(inner, &$0) }
        }
    }

    private static func basic<T: BitwiseCopyable>(_ value: T, _ code: UInt8, _ iterator: inout DBusMessageIter) -> Bool
    {
        var copy = value
        return dbus_message_iter_append_basic(&iterator, Int32(code), &copy) != 0
    }

    private static func append(_ bytes: [UInt8], _ iterator: inout DBusMessageIter) -> Bool {
        container("a", "y", &iterator) { inner in
            bytes.withUnsafeBufferPointer { buffer in
                guard var start = buffer.baseAddress, !buffer.isEmpty else { return true }
                return dbus_message_iter_append_fixed_array(
                    &inner, Int32(UInt8(ascii: "y")), &start, Int32(clamping: buffer.count)) != 0
            }
        }
    }

    private static func container(
        _ code: Unicode.Scalar,
        _ contents: String?,
        _ iterator: inout DBusMessageIter,
        _ body: (inout DBusMessageIter) -> Bool
    ) -> Bool {
        var inner = DBusMessageIter()
        let kind = Int32(code.value)
        let opened =
            if let contents {
                dbus_message_iter_open_container(&iterator, kind, contents, &inner) != 0
            } else {
                dbus_message_iter_open_container(&iterator, kind, nil, &inner) != 0
            }
        guard opened else { return false }
        guard body(&inner) else {
            dbus_message_iter_abandon_container(&iterator, &inner)
            return false
        }
        return dbus_message_iter_close_container(&iterator, &inner) != 0
    }
}
