// SPDX-License-Identifier: MIT

/// The path of an object on a connection: `/`, or elements of letters, digits and `_` each after a `/`.
///
/// Source: D-Bus specification, "Valid Object Paths".
public struct ObjectPath: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The path as it is sent.
    public let string: String

    /// - Returns: nil if the path breaks the specification's rules or is longer than 4096 bytes.
    public init?(validating string: String) {
        guard ObjectPath.isValid(string) else { return nil }
        self.string = string
    }

    /// For strings that libdbus has validated already.
    init(trusted string: String) {
        self.string = string
    }

    public static let root = ObjectPath(trusted: "/")

    public var description: String { string }

    public static func < (left: ObjectPath, right: ObjectPath) -> Bool { left.string < right.string }

    /// The path one element deeper.
    ///
    /// - Returns: nil if the element is empty or holds anything but letters, digits and `_`.
    public func appending(_ element: String) -> ObjectPath? {
        guard !element.utf8.contains(UInt8(ascii: "/")) else { return nil }
        return ObjectPath(validating: self == .root ? "/\(element)" : "\(string)/\(element)")
    }

    /// The path one element deeper, where each byte of the element other than a letter or digit becomes `_` and two
    /// hexadecimal digits, so that different elements give different paths. An empty one becomes `_`.
    public func appending(escaping element: String) -> ObjectPath? {
        guard !element.isEmpty else { return appending("_") }
        var escaped = ""
        for byte in element.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"):
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16)
                escaped += byte < 16 ? "_0\(digits)" : "_\(digits)"
            }
        }
        return appending(escaped)
    }

    /// The path without its last element; nil for the root.
    public var parent: ObjectPath? {
        guard self != .root, let slash = lastSlash else { return nil }
        return slash == string.startIndex ? .root : ObjectPath(trusted: String(string[..<slash]))
    }

    /// The text after the last `/`.
    public var lastElement: String {
        lastSlash.map { String(string[string.utf8.index(after: $0)...]) } ?? string
    }

    /// Looked for among the bytes: taking a string's characters apart is dear, and every signal's path is looked at.
    private var lastSlash: String.Index? { string.utf8.lastIndex(of: UInt8(ascii: "/")) }

    /// Whether this path lies beneath the other one (and is not the same).
    public func isBeneath(_ ancestor: ObjectPath) -> Bool {
        guard ancestor != .root else { return self != .root }
        return string.utf8.count > ancestor.string.utf8.count + 1 && string.hasPrefix(ancestor.string)
            && string.utf8[string.utf8.index(string.utf8.startIndex, offsetBy: ancestor.string.utf8.count)]
                == UInt8(ascii: "/")
    }

    static func isValid(_ string: String) -> Bool {
        guard string.utf8.count <= Limits.pathBytes, string.utf8.first == UInt8(ascii: "/") else { return false }
        guard string.utf8.count > 1 else { return true }
        var previous: UInt8 = 0
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "/"):
                guard previous != UInt8(ascii: "/") else { return false }
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"):
                break
            default:
                return false
            }
            previous = byte
        }
        return previous != UInt8(ascii: "/")
    }
}

extension ObjectPath: ExpressibleByStringLiteral {
    /// Only for literals in source code (the literal type is `StaticString`): a wrong one is a mistake of the author
    /// and traps. Text from anywhere else goes through ``init(validating:)``.
    public init(stringLiteral value: StaticString) {
        let text = value.withUTF8Buffer { String(decoding: $0, as: UTF8.self) }
        precondition(ObjectPath.isValid(text), "not an object path: \(text)")
        string = text
    }
}
