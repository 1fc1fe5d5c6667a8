// SPDX-License-Identifier: MIT

/// Writes JSON in the one form of the protocol: the order as given, no white space, `/` and non-ASCII not escaped.
///
/// Of our own because `JSONEncoder`'s key order changes from call to call.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ value: JSONValue) {
        switch value {
        case .null: raw("null")
        case .bool(let value): raw(value ? "true" : "false")
        case .number(let number): raw(number.text)
        case .string(let text): write(text)
        case .array(let values):
            bytes.append(UInt8(ascii: "["))
            for (position, value) in values.enumerated() {
                if position > 0 { bytes.append(UInt8(ascii: ",")) }
                write(value)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object): write(object)
        }
    }

    mutating func write(_ object: JSONObject) {
        bytes.append(UInt8(ascii: "{"))
        for (position, element) in object.enumerated() {
            if position > 0 { bytes.append(UInt8(ascii: ",")) }
            write(element.key)
            bytes.append(UInt8(ascii: ":"))
            write(element.value)
        }
        bytes.append(UInt8(ascii: "}"))
    }

    mutating func write(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""): raw("\\\"")
            case UInt8(ascii: "\\"): raw("\\\\")
            case 0x08: raw("\\b")
            case 0x09: raw("\\t")
            case 0x0A: raw("\\n")
            case 0x0C: raw("\\f")
            case 0x0D: raw("\\r")
            case 0..<0x20:
                raw("\\u00")
                bytes.append(Self.digits[Int(byte >> 4)])
                bytes.append(Self.digits[Int(byte & 0x0F)])
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static let digits = Array("0123456789abcdef".utf8)

    private mutating func raw(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }
}

extension JSONObject {
    /// The object as UTF-8 JSON, in its own order and without white space.
    public func encoded() -> [UInt8] {
        var writer = JSONWriter()
        writer.write(self)
        return writer.bytes
    }
}

extension JSONValue {
    /// The value as UTF-8 JSON, without white space.
    public func encoded() -> [UInt8] {
        var writer = JSONWriter()
        writer.write(self)
        return writer.bytes
    }
}
