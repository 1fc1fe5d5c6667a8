// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

// ATT errors and their D-Bus names, both ways.
extension BlueZFailure {
    /// What a peer's ATT error looks like after bluetoothd (src/gatt-client.c, create_gatt_dbus_error).
    static func attribute(_ name: String, _ error: DBusError, _ subject: String?) -> BluetoothError {
        let text = error.message
        func make(_ code: BluetoothError.Code, _ message: String, _ advice: String? = nil) -> BluetoothError {
            BluetoothError(code, message, advice: advice, subject: subject, cause: error.description)
        }
        if let att = attError(name, text) {
            return BluetoothError(
                .attributeError,
                "the device refused: \(att)",
                advice: att == .insufficientAuthentication ? "Pair the device: `bluetoothctl pair`." : nil,
                subject: subject,
                att: att,
                cause: error.description
            )
        }
        switch name {
        case BlueZError.notPermitted: return make(.busy, "another program uses this characteristic for itself")
        case BlueZError.failed where text.contains("Not connected") || text.contains("No ATT transport"):
            return make(.notConnected, "there is no link to the device")
        case BlueZError.invalidArguments: return make(.invalidArgument, "the Bluetooth service refused an argument")
        default: return make(.internalFailure, "the operation failed", seeItsLog)
        }
    }

    private static func attError(_ name: String, _ text: String) -> ATTError? {
        switch name {
        case BlueZError.notPermitted:
            if text.contains("Read not permitted") { return .readNotPermitted }
            if text.contains("Write not permitted") { return .writeNotPermitted }
            return text.contains("Not paired") ? .insufficientAuthentication : nil
        case BlueZError.invalidArguments:
            if text.contains("Invalid offset") { return .invalidOffset }
            return text.contains("Invalid Length") ? .invalidAttributeValueLength : nil
        case BlueZError.invalidOffset: return .invalidOffset
        case BlueZError.invalidLength, BlueZError.invalidValueLength: return .invalidAttributeValueLength
        case BlueZError.notAuthorized: return .insufficientAuthorization
        case BlueZError.notSupported: return .requestNotSupported
        case BlueZError.failed:
            // "Operation failed with ATT error: 0x80"
            guard let start = text.range(of: "ATT error: 0x")?.upperBound else { return nil }
            return UInt8(text[start...].prefix { $0.isHexDigit }, radix: 16).map(ATTError.init(rawValue:))
        default: return nil
        }
    }

    /// What bluetoothd has to be told so that the peer gets this ATT error (src/gatt-database.c,
    /// dbus_error_to_att_ecode).
    ///
    /// Codes of the application's own reach the peer from BlueZ 5.66 on; before, each is 0x80. What has no name of its
    /// own becomes 0x0E, unlikely error.
    static func answer(for error: ATTError) -> DBusError {
        let text = error.description
        switch error {
        case .readNotPermitted, .writeNotPermitted: return DBusError(name: BlueZError.notPermitted, message: text)
        case .invalidOffset: return DBusError(name: BlueZError.invalidOffset, message: text)
        case .invalidAttributeValueLength: return DBusError(name: BlueZError.invalidValueLength, message: text)
        case .insufficientAuthorization: return DBusError(name: BlueZError.notAuthorized, message: text)
        case .requestNotSupported: return DBusError(name: BlueZError.notSupported, message: text)
        default:
            guard (0x80...0x9F).contains(error.rawValue) else {
                return DBusError(name: "org.bluez.Error.UnlikelyError", message: text)
            }
            // The whole message is parsed as a number.
            return DBusError(name: BlueZError.failed, message: "0x" + String(error.rawValue, radix: 16))
        }
    }
}

extension String {
    /// The first occurrence (the one in Foundation is not in FoundationEssentials).
    fileprivate func range(of part: String) -> Range<String.Index>? { firstRange(of: part) }
}
