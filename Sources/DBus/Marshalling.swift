// SPDX-License-Identifier: MIT

import CDBus

/// Messages as bytes, without a bus: the seam for tests and fuzzing.
package enum Marshalling {
    /// The bytes of a signal with a body.
    package static func encode(_ body: [DBusValue]) throws(DBusError) -> [UInt8] {
        let message = try RawMessage.signal("/", "a.b", "c", body, to: nil)
        dbus_message_set_serial(message.pointer, 1)
        var bytes: UnsafeMutablePointer<CChar>?
        var count: Int32 = 0
        guard dbus_message_marshal(message.pointer, &bytes, &count) != 0, let bytes else {
            throw DBusError(.internalFailure, "no memory for a message")
        }
        defer { dbus_free(bytes) }
        return UnsafeRawBufferPointer(start: bytes, count: Int(count)).map { $0 }
    }

    /// The message that bytes hold.
    ///
    /// - Throws: ``DBusError/Code/invalidArgument`` for bytes that are no message, ``DBusError/Code/limitExceeded``.
    package static func decode(_ bytes: [UInt8]) throws(DBusError) -> DBusMessage {
        var error = CDBus.DBusError()
        dbus_error_init(&error)
        let pointer = bytes.withUnsafeBytes { buffer in
            dbus_message_demarshal(
                buffer.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(clamping: buffer.count), &error)
        }
        guard let pointer else {
            defer { dbus_error_free(&error) }
            throw DBusError(.invalidArgument, MessageReader.text(error.message) ?? "not a message")
        }
        defer { dbus_message_unref(pointer) }
        return try MessageReader.message(pointer)
    }

    /// Whether libdbus takes a signature, to compare ours with.
    package static func acceptsSignature(_ text: String) -> Bool { dbus_signature_validate(text, nil) != 0 }
    package static func acceptsPath(_ text: String) -> Bool { dbus_validate_path(text, nil) != 0 }
    package static func acceptsBusName(_ text: String) -> Bool { dbus_validate_bus_name(text, nil) != 0 }
    package static func acceptsInterface(_ text: String) -> Bool { dbus_validate_interface(text, nil) != 0 }
    package static func acceptsMember(_ text: String) -> Bool { dbus_validate_member(text, nil) != 0 }
}
