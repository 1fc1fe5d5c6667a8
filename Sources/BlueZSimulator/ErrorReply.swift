// SPDX-License-Identifier: MIT

internal import BluetoothLE

/// An error answer with the name and the text that bluetoothd gives (BlueZ's src/error.c).
struct ErrorReply: Error, Sendable, Hashable {
    let name: String
    let message: String

    init(_ name: String, _ message: String) {
        self.name = "org.bluez.Error." + name
        self.message = message
    }

    init(fullName: String, _ message: String) {
        name = fullName
        self.message = message
    }

    static let invalidArguments = Self("InvalidArguments", "Invalid arguments in method call")
    /// btd_error_busy
    static let busy = Self("InProgress", "Operation already in progress")
    /// btd_error_in_progress
    static let inProgress = Self("InProgress", "In Progress")
    static let alreadyExists = Self("AlreadyExists", "Already Exists")
    static let notSupported = Self("NotSupported", "Operation is not supported")
    static let notConnected = Self("NotConnected", "Not Connected")
    static let notReady = Self("NotReady", "Resource Not Ready")
    static let doesNotExist = Self("DoesNotExist", "Does Not Exist")
    static let notAuthorized = Self("NotAuthorized", "Operation Not Authorized")
    static func failed(_ message: String) -> Self { Self("Failed", message) }
    static func notPermitted(_ message: String) -> Self { Self("NotPermitted", message) }
    static func invalidArguments(_ message: String) -> Self { Self("InvalidArguments", message) }

    static let maximumAdvertisements = notPermitted("Maximum advertisements reached")
    /// BlueZ's sentence ends with a full stop here and nowhere else.
    static let unparsableAdvertisement = failed("Failed to parse advertisement.")
    static let registrationNotCompleted = failed("Failed to complete registration")
    static let advertisementNotRegistered = failed("Failed to register advertisement")

    // Connection failures: ERR_LE_CONN_* of BlueZ's src/error.h.
    static let adapterNotPowered = failed("le-connection-adapter-not-powered")

    /// What a GATT client's application gets for an ATT error: create_gatt_dbus_error in src/gatt-client.c.
    init(att error: ATTError) {
        switch error {
        case .readNotPermitted: self = .notPermitted("Read not permitted")
        case .writeNotPermitted: self = .notPermitted("Write not permitted")
        case .insufficientAuthentication, .insufficientEncryption, ATTError(rawValue: 0x0C):
            self = .notPermitted("Not paired")
        case .invalidOffset: self = .invalidArguments("Invalid offset")
        case .invalidAttributeValueLength: self = .invalidArguments("Invalid Length")
        case .insufficientAuthorization: self = .notAuthorized
        case .requestNotSupported: self = .notSupported
        case ATTError(rawValue: 0): self = .failed("Operation failed")
        default:
            let code = String(error.rawValue, radix: 16)
            self = .failed("Operation failed with ATT error: 0x" + (error.rawValue < 16 ? "0" : "") + code)
        }
    }
}

extension BehaviourProfile {
    /// What nearly every failed Connect says.
    var connectionAborted: ErrorReply {
        .failed(namesConnectionErrors ? "le-connection-abort-by-local" : "Software caused connection abort")
    }

    var connectionCancelled: ErrorReply {
        .failed(namesConnectionErrors ? "br-connection-canceled" : "Cancelled")
    }
}

extension ATTError {
    /// What a central gets for an error that the application answered: dbus_error_to_att_ecode in
    /// src/gatt-database.c.
    ///
    /// - Parameter notPermitted: The code for org.bluez.Error.NotPermitted, which depends on the request.
    /// - Parameter profile: Whether the text of `Failed` may be a code, and which names it knows.
    init(applicationError name: String, _ message: String, notPermitted: ATTError, profile: BehaviourProfile) {
        switch name {
        case "org.bluez.Error.Failed":
            self = profile.passesApplicationErrors ? Self(numericMessage: message) : .application
        case "org.bluez.Error.NotSupported": self = .requestNotSupported
        case "org.bluez.Error.NotAuthorized": self = .insufficientAuthorization
        case "org.bluez.Error.InvalidValueLength": self = .invalidAttributeValueLength
        case "org.bluez.Error.InvalidOffset": self = .invalidOffset
        case "org.bluez.Error.InProgress": self = Self(rawValue: 0xFE)
        case "org.bluez.Error.ImproperlyConfigured" where profile.passesImproperlyConfigured:
            self = Self(rawValue: 0xFD)
        case "org.bluez.Error.NotPermitted": self = notPermitted
        default: self = .unlikelyError
        }
    }

    /// The text of an org.bluez.Error.Failed may be a code as strtol reads it with base 0: 128, 0x80, 0200.
    ///
    /// Text that is no number is 0x80, a number outside 0x80...0x9F "unlikely error". An empty text reads as the
    /// number 0, as in C.
    private init(numericMessage message: String) {
        var digits = Substring(message)
        while let first = digits.first, first.isWhitespace { digits.removeFirst() }
        let negative = digits.first == "-"
        if negative || digits.first == "+" { digits.removeFirst() }
        var radix = 10
        if digits.hasPrefix("0x") || digits.hasPrefix("0X") {
            digits.removeFirst(2)
            radix = 16
        } else if digits.hasPrefix("0") {
            radix = 8
        }
        if message.isEmpty {
            self = .unlikelyError
        } else if digits.allSatisfy({ $0.isASCII && $0.isHexDigit }), let code = Int(digits, radix: radix) {
            self = !negative && (0x80...0x9F).contains(code) ? Self(rawValue: UInt8(code)) : .unlikelyError
        } else {
            self = .application
        }
    }
}
