// SPDX-License-Identifier: MIT

/// Why bytes are not JSON that we read.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of error; more may follow.
    public struct Code: Hashable, Sendable {
        private let name: String

        private init(_ name: String) {
            self.name = name
        }

        /// The text breaks the grammar, or is not UTF-8.
        public static let syntax = Code("syntax")
        /// The text ends too early; everything up to there could be the start of a valid one.
        public static let unexpectedEnd = Code("unexpected_end")
        /// Nested too deeply.
        public static let tooDeep = Code("too_deep")
    }

    public var code: Code
    public var message: String
    /// Where, in bytes from the start.
    public var offset: Int

    public var description: String { "\(message) (byte \(offset))" }
}

/// Reads JSON (RFC 8259) strictly by the grammar, and tolerantly where the grammar says nothing: the first of duplicate keys
/// wins. It recurses as deep as the limit allows and no deeper, and takes time linear in the input.
package struct JSONReader {
    /// The deepest nesting of objects and arrays that is read unless somebody asks for less; the outermost is level 1.
    package static let maximumDepth = 32

    private let bytes: [UInt8]
    private var position = 0
    private let maxDepth: Int

    private init(_ bytes: [UInt8], maxDepth: Int) {
        self.bytes = bytes
        self.maxDepth = maxDepth
    }

    /// Reads one value and nothing after it but white space.
    package static func read(_ bytes: [UInt8], maxDepth: Int = JSONReader.maximumDepth) throws(JSONError) -> JSONValue {
        var reader = JSONReader(bytes, maxDepth: maxDepth)
        let value = try reader.value(depth: 1)
        reader.skipWhiteSpace()
        guard reader.position == bytes.count else { throw reader.syntax("Bytes after the value") }
        return value
    }

    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        skipWhiteSpace()
        switch try peek() {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        default: throw syntax("Not a value")
        }
    }

    private mutating func object(depth: Int) throws(JSONError) -> JSONObject {
        try enter(depth)
        var object = JSONObject()
        skipWhiteSpace()
        if try peek() == UInt8(ascii: "}") {
            position += 1
            return object
        }
        while true {
            skipWhiteSpace()
            guard try peek() == UInt8(ascii: "\"") else { throw syntax("A key must be a string") }
            let key = try string()
            skipWhiteSpace()
            guard try peek() == UInt8(ascii: ":") else { throw syntax("No colon after a key") }
            position += 1
            object.insertIfAbsent(key, try value(depth: depth + 1))
            if try closes(UInt8(ascii: "}")) { return object }
        }
    }

    private mutating func array(depth: Int) throws(JSONError) -> [JSONValue] {
        try enter(depth)
        var values: [JSONValue] = []
        skipWhiteSpace()
        if try peek() == UInt8(ascii: "]") {
            position += 1
            return values
        }
        while true {
            values.append(try value(depth: depth + 1))
            if try closes(UInt8(ascii: "]")) { return values }
        }
    }

    private mutating func enter(_ depth: Int) throws(JSONError) {
        guard depth <= maxDepth else {
            throw JSONError(code: .tooDeep, message: "Nested deeper than \(maxDepth)", offset: position)
        }
        position += 1
    }

    private mutating func closes(_ end: UInt8) throws(JSONError) -> Bool {
        skipWhiteSpace()
        let next = try peek()
        guard next == end || next == UInt8(ascii: ",") else { throw syntax("No comma between values") }
        position += 1
        return next == end
    }

    private mutating func word(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for offset in 0..<word.utf8CodeUnitCount {
            guard try peek() == word.utf8Start[offset] else { throw syntax("Not a value") }
            position += 1
        }
        return value
    }

    private mutating func number() throws(JSONError) -> JSONNumber {
        let start = position
        if bytes[position] == UInt8(ascii: "-") { position += 1 }
        if try peek() == UInt8(ascii: "0") {
            position += 1
        } else {
            try digits()
        }
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
            position += 1
            let sign = try peek()
            if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        return JSONNumber(checked: String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func digits() throws(JSONError) {
        guard Self.isDigit(try peek()) else { throw syntax("No digit in a number") }
        while position < bytes.count, Self.isDigit(bytes[position]) { position += 1 }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private mutating func string() throws(JSONError) -> String {
        position += 1
        var text: [UInt8] = []
        while true {
            let byte = try peek()
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                position += 1
                try escape(into: &text)
            case 0..<0x20:
                throw syntax("A control character in a string")
            case 0x20..<0x80:
                text.append(byte)
                position += 1
            default:
                try multibyte(into: &text)
            }
        }
    }

    /// One character of more than one byte; what is not UTF-8 is a syntax error, what stops short an early end.
    private mutating func multibyte(into text: inout [UInt8]) throws(JSONError) {
        let lead = bytes[position]
        let length: Int
        switch lead {
        case 0xC2...0xDF: length = 2
        case 0xE0...0xEF: length = 3
        case 0xF0...0xF4: length = 4
        default: throw syntax("Not UTF-8")
        }
        for offset in 1..<length {
            guard position + offset < bytes.count else {
                throw JSONError(code: .unexpectedEnd, message: "Ends in a character", offset: bytes.count)
            }
            var allowed: ClosedRange<UInt8> = 0x80...0xBF
            if offset == 1 {
                // No overlong forms, no surrogates, nothing past U+10FFFF (Unicode, table 3-7).
                switch lead {
                case 0xE0: allowed = 0xA0...0xBF
                case 0xED: allowed = 0x80...0x9F
                case 0xF0: allowed = 0x90...0xBF
                case 0xF4: allowed = 0x80...0x8F
                default: break
                }
            }
            guard allowed.contains(bytes[position + offset]) else { throw syntax("Not UTF-8") }
        }
        text.append(contentsOf: bytes[position..<position + length])
        position += length
    }

    private mutating func escape(into text: inout [UInt8]) throws(JSONError) {
        let kind = try peek()
        position += 1
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(kind)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"): try unicodeEscape(into: &text)
        default: throw syntax("An unknown escape")
        }
    }

    private mutating func unicodeEscape(into text: inout [UInt8]) throws(JSONError) {
        var code = try fourHexDigits()
        if (0xD800...0xDBFF).contains(code) {
            // A surrogate without its other half is no character: no text that we could hand on contains it.
            for expected in [UInt8(ascii: "\\"), UInt8(ascii: "u")] {
                guard try peek() == expected else { throw syntax("A lone surrogate") }
                position += 1
            }
            let low = try fourHexDigits()
            guard (0xDC00...0xDFFF).contains(low) else { throw syntax("A lone surrogate") }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw syntax("A lone surrogate") }
        text.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    }

    private mutating func fourHexDigits() throws(JSONError) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            let digit: UInt8
            switch try peek() {
            case let byte where Self.isDigit(byte): digit = byte - UInt8(ascii: "0")
            case let byte where (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20):
                digit = (byte | 0x20) - UInt8(ascii: "a") + 10
            default: throw syntax("Not a hexadecimal digit")
            }
            code = code << 4 | UInt32(digit)
            position += 1
        }
        return code
    }

    private mutating func skipWhiteSpace() {
        while position < bytes.count, Self.isWhiteSpace(bytes[position]) { position += 1 }
    }

    package static func isWhiteSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    private func peek() throws(JSONError) -> UInt8 {
        guard position < bytes.count else {
            throw JSONError(code: .unexpectedEnd, message: "Ends too early", offset: position)
        }
        return bytes[position]
    }

    private func syntax(_ message: String) -> JSONError {
        JSONError(code: .syntax, message: message, offset: position)
    }
}

extension JSONValue {
    /// Reads one JSON value.
    ///
    /// - Throws: `JSONError` for anything but one value nested at most 32 deep, with white space round it.
    public init(parsing bytes: [UInt8]) throws(JSONError) {
        self = try JSONReader.read(bytes)
    }
}

extension JSONObject {
    /// Reads one JSON object.
    ///
    /// - Throws: `JSONError` for anything but one object nested at most 32 deep, with white space round it.
    public init(parsing bytes: [UInt8]) throws(JSONError) {
        guard let object = try JSONReader.read(bytes).object else {
            throw JSONError(code: .syntax, message: "Not an object", offset: 0)
        }
        self = object
    }
}
