// SPDX-License-Identifier: MIT

/// A sequence of D-Bus types, such as `s`, `a{sv}` or `oa{sv}`.
///
/// Source: D-Bus specification, "Type System". At most 255 bytes, 32 arrays and 32 structures deep.
public struct Signature: Hashable, Sendable, CustomStringConvertible {
    /// The signature as it is sent.
    public let string: String

    /// - Returns: nil if the text is not a sequence of complete D-Bus types.
    public init?(validating string: String) {
        guard Signature.isValid(string) else { return nil }
        self.string = string
    }

    /// For text that libdbus has validated already, or that is built from valid parts.
    init(trusted string: String) {
        self.string = string
    }

    public static let empty = Signature(trusted: "")
    public static let byte = Signature(trusted: "y")
    public static let bool = Signature(trusted: "b")
    public static let string = Signature(trusted: "s")
    public static let objectPath = Signature(trusted: "o")
    public static let variant = Signature(trusted: "v")
    public static let strings = Signature(trusted: "as")
    public static let bytes = Signature(trusted: "ay")
    public static let variantDictionary = Signature(trusted: "a{sv}")

    public var description: String { string }

    /// Whether this is exactly one complete type, which is what arrays and variants hold.
    public var isSingle: Bool {
        Signature.withBytes(of: string) { bytes in
            var parser = SignatureParser(bytes: bytes)
            return parser.completeType(arrays: 0, structures: 0) && parser.atEnd
        }
    }

    /// The complete types of the sequence, one by one.
    public var types: [Signature] {
        Signature.withBytes(of: string) { bytes in
            var parser = SignatureParser(bytes: bytes)
            var found: [Signature] = []
            while !parser.atEnd {
                let start = parser.position
                guard parser.completeType(arrays: 0, structures: 0) else { return found }
                found.append(Signature(trusted: String(decoding: bytes[start..<parser.position], as: UTF8.self)))
            }
            return found
        }
    }

    static func isValid(_ string: String) -> Bool {
        guard string.utf8.count <= Limits.signatureBytes else { return false }
        return withBytes(of: string) { bytes in
            var parser = SignatureParser(bytes: bytes)
            while !parser.atEnd {
                guard parser.completeType(arrays: 0, structures: 0) else { return false }
            }
            return true
        }
    }

    private static func withBytes<R>(of string: String, _ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
        var copy = string
        return copy.withUTF8(body)
    }
}

extension Signature: ExpressibleByStringLiteral {
    /// Only for literals in source code (the literal type is `StaticString`): a wrong one is a mistake of the author
    /// and traps. Text from anywhere else goes through ``init(validating:)``.
    public init(stringLiteral value: StaticString) {
        let text = value.withUTF8Buffer { String(decoding: $0, as: UTF8.self) }
        precondition(Signature.isValid(text), "not a signature: \(text)")
        string = text
    }
}

/// Walks over one complete type after another.
struct SignatureParser {
    let bytes: UnsafeBufferPointer<UInt8>
    var position = 0

    init(bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
    }

    var atEnd: Bool { position >= bytes.count }

    static func isBasic(_ code: UInt8) -> Bool {
        switch code {
        case UInt8(ascii: "y"), UInt8(ascii: "b"), UInt8(ascii: "n"), UInt8(ascii: "q"), UInt8(ascii: "i"),
            UInt8(ascii: "u"), UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "s"),
            UInt8(ascii: "o"), UInt8(ascii: "g"), UInt8(ascii: "h"):
            true
        default:
            false
        }
    }

    /// Steps over one complete type. False, with the position undefined, if there is none.
    mutating func completeType(arrays: Int, structures: Int) -> Bool {
        guard !atEnd else { return false }
        let code = bytes[position]
        position += 1
        if SignatureParser.isBasic(code) || code == UInt8(ascii: "v") { return true }
        switch code {
        case UInt8(ascii: "a"):
            guard arrays < Limits.nesting else { return false }
            guard !atEnd, bytes[position] == UInt8(ascii: "{") else {
                return completeType(arrays: arrays + 1, structures: structures)
            }
            position += 1
            guard structures < Limits.nesting, !atEnd, SignatureParser.isBasic(bytes[position]) else { return false }
            position += 1
            guard completeType(arrays: arrays + 1, structures: structures + 1) else { return false }
            return close(UInt8(ascii: "}"))
        case UInt8(ascii: "("):
            guard structures < Limits.nesting else { return false }
            repeat {
                guard completeType(arrays: arrays, structures: structures + 1) else { return false }
            } while !atEnd && bytes[position] != UInt8(ascii: ")")
            return close(UInt8(ascii: ")"))
        default:
            return false
        }
    }

    private mutating func close(_ bracket: UInt8) -> Bool {
        guard !atEnd, bytes[position] == bracket else { return false }
        position += 1
        return true
    }
}
