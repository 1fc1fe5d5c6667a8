// SPDX-License-Identifier: MIT

/// A client's name for one request, the same whenever it asks again: 16 random bytes.
package struct JoinRequestID: Hashable, Sendable {
    package let bytes: [UInt8]

    static let key = "ndk.requestId"
    private static let size = 16

    package init(_ entropy: Entropy = .system) {
        bytes = entropy.bytes(Self.size)
    }

    /// From base64url without padding; nil where it is not 16 bytes in their one form.
    init?(_ text: String) {
        guard let bytes = Base64URL.decode(text), bytes.count == Self.size else { return nil }
        self.bytes = bytes
    }

    package var text: String { Base64URL.encode(bytes) }
}

/// Base64 with `-` and `_`, without padding (RFC 4648, section 5).
enum Base64URL {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let value = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for digit in 0...group.count { text.append(digits[value >> (18 - 6 * digit) & 0x3F]) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil for other characters, padding, and bits that no encoder sets.
    static func decode(_ text: String) -> [UInt8]? {
        var (bytes, value, bits) = ([UInt8](), 0, 0)
        for character in text.utf8 {
            guard let digit = digits.firstIndex(of: character) else { return nil }
            value = (value << 6 | digit) & 0xFFFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(value >> bits & 0xFF))
            }
        }
        guard bits < 6, value & ((1 << bits) - 1) == 0 else { return nil }
        return bytes
    }
}

extension JSONObject {
    /// Keys that begin so belong to the protocol; an app never sees them and cannot set them.
    package static let reservedPrefix = "ndk."

    /// Whether an app's payload uses what is not the app's.
    package var hasReservedKeys: Bool {
        keys.contains { $0.utf8.starts(with: Self.reservedPrefix.utf8) }
    }

    /// What the app sees.
    package var withoutReservedKeys: JSONObject {
        guard hasReservedKeys else { return self }
        return JSONObject(filter { !$0.key.utf8.starts(with: Self.reservedPrefix.utf8) }.map { ($0.key, $0.value) })
    }
}
