// SPDX-License-Identifier: MIT

/// A value of any D-Bus type.
public enum DBusValue: Sendable, Hashable {
    case byte(UInt8)
    case bool(Bool)
    case int16(Int16)
    case uint16(UInt16)
    case int32(Int32)
    case uint32(UInt32)
    case int64(Int64)
    case uint64(UInt64)
    case double(Double)
    case string(String)
    case objectPath(ObjectPath)
    case signature(Signature)
    case unixFD(UnixFD)
    /// An array of bytes (`ay`), kept flat.
    case bytes([UInt8])
    /// An array of anything else. Each element's signature must be the one given.
    case array(of: Signature, [DBusValue])
    /// A dictionary, in the order of the message. Keys are of a basic type.
    indirect case dictionary(key: Signature, value: Signature, [DBusEntry])
    case structure([DBusValue])
    indirect case variant(DBusValue)

    /// The type of this value.
    public var signature: Signature {
        switch self {
        case .array(of: let element, _):
            return Signature(trusted: "a\(element.string)")
        case .dictionary(key: let key, value: let value, _):
            return Signature(trusted: "a{\(key.string)\(value.string)}")
        case .structure(let members):
            return Signature(trusted: "(\(members.map { $0.signature.string }.joined()))")
        case .bytes: return .bytes
        case .variant: return .variant
        default: return Signature(trusted: String(Unicode.Scalar(typeCode)))
        }
    }

    /// The first byte of the signature.
    var typeCode: UInt8 {
        switch self {
        case .byte: UInt8(ascii: "y")
        case .bool: UInt8(ascii: "b")
        case .int16: UInt8(ascii: "n")
        case .uint16: UInt8(ascii: "q")
        case .int32: UInt8(ascii: "i")
        case .uint32: UInt8(ascii: "u")
        case .int64: UInt8(ascii: "x")
        case .uint64: UInt8(ascii: "t")
        case .double: UInt8(ascii: "d")
        case .string: UInt8(ascii: "s")
        case .objectPath: UInt8(ascii: "o")
        case .signature: UInt8(ascii: "g")
        case .unixFD: UInt8(ascii: "h")
        case .bytes, .array, .dictionary: UInt8(ascii: "a")
        case .structure: UInt8(ascii: "(")
        case .variant: UInt8(ascii: "v")
        }
    }
}

/// One entry of a dictionary.
public struct DBusEntry: Sendable, Hashable {
    public let key: DBusValue
    public let value: DBusValue

    public init(_ key: DBusValue, _ value: DBusValue) {
        self.key = key
        self.value = value
    }
}
