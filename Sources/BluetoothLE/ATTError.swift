// SPDX-License-Identifier: MIT

/// An Attribute Protocol error code (Bluetooth Core Specification, Vol 3, Part F, 3.4.1.1).
public struct ATTError: Error, Sendable, Hashable, RawRepresentable, CustomStringConvertible {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let invalidHandle = Self(rawValue: 0x01)
    public static let readNotPermitted = Self(rawValue: 0x02)
    public static let writeNotPermitted = Self(rawValue: 0x03)
    public static let insufficientAuthentication = Self(rawValue: 0x05)
    public static let requestNotSupported = Self(rawValue: 0x06)
    public static let invalidOffset = Self(rawValue: 0x07)
    public static let insufficientAuthorization = Self(rawValue: 0x08)
    public static let attributeNotFound = Self(rawValue: 0x0A)
    public static let invalidAttributeValueLength = Self(rawValue: 0x0D)
    public static let unlikelyError = Self(rawValue: 0x0E)
    public static let insufficientEncryption = Self(rawValue: 0x0F)
    public static let insufficientResources = Self(rawValue: 0x11)
    /// The first code that belongs to the application: 0x80 to 0x9F are its own.
    public static let application = Self(rawValue: 0x80)

    public var description: String {
        let name: String? =
            switch self {
            case .invalidHandle: "invalid handle"
            case .readNotPermitted: "read not permitted"
            case .writeNotPermitted: "write not permitted"
            case .insufficientAuthentication: "insufficient authentication"
            case .requestNotSupported: "request not supported"
            case .invalidOffset: "invalid offset"
            case .insufficientAuthorization: "insufficient authorization"
            case .attributeNotFound: "attribute not found"
            case .invalidAttributeValueLength: "invalid attribute value length"
            case .unlikelyError: "unlikely error"
            case .insufficientEncryption: "insufficient encryption"
            case .insufficientResources: "insufficient resources"
            default: nil
            }
        let hex = (rawValue < 16 ? "0x0" : "0x") + String(rawValue, radix: 16, uppercase: true)
        return name.map { "ATT \(hex) (\($0))" } ?? "ATT \(hex)"
    }
}
