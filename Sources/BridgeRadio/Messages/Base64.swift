// SPDX-License-Identifier: MIT

/// Base64 with padding (RFC 4648, section 4), as the bridge protocol writes binary values, and payloads attachments.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
        return values
    }()

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let rest = min(3, bytes.count - index)
            var word = UInt32(bytes[index]) << 16
            if rest > 1 { word |= UInt32(bytes[index + 1]) << 8 }
            if rest > 2 { word |= UInt32(bytes[index + 2]) }
            for place in 0..<4 {
                let letter = alphabet[Int(word >> UInt32(18 - 6 * place) & 0x3F)]
                text.append(place <= rest ? letter : UInt8(ascii: "="))
            }
            index += 3
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil for anything that is not whole groups of four letters, padded at the end, without stray bits.
    package static func decode(_ text: String) -> [UInt8]? {
        let letters = Array(text.utf8)
        guard letters.count.isMultiple(of: 4) else { return nil }
        if letters.isEmpty { return [] }
        let padding = letters.suffix(2).count { $0 == UInt8(ascii: "=") }
        if padding == 2, letters[letters.count - 2] != UInt8(ascii: "=") { return nil }
        if padding == 1, letters.last != UInt8(ascii: "=") { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(letters.count / 4 * 3)
        var word: UInt32 = 0
        for (index, letter) in letters.enumerated() {
            let isPadding = index >= letters.count - padding
            let value = isPadding ? 0 : values[Int(letter)]
            guard value != 0xFF else { return nil }
            word = word << 6 | UInt32(value)
            guard index % 4 == 3 else { continue }
            bytes.append(UInt8(truncatingIfNeeded: word >> 16))
            bytes.append(UInt8(truncatingIfNeeded: word >> 8))
            bytes.append(UInt8(truncatingIfNeeded: word))
            word = 0
        }
        guard bytes.suffix(padding).allSatisfy({ $0 == 0 }) else { return nil }
        bytes.removeLast(padding)
        return bytes
    }
}
