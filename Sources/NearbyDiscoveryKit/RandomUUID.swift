// SPDX-License-Identifier: MIT

/// A random UUID (RFC 9562, version 4) as lower-case text.
///
/// Foundation has one, but linking it for this alone costs a static binary megabytes.
enum RandomUUID {
    static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        let high: UInt64 = generator.next()
        let low: UInt64 = generator.next()
        return text(high: high, low: low)
    }

    /// Puts version and variant over 128 bits.
    static func text(high: UInt64, low: UInt64) -> String {
        let high = high & ~0xf000 | 0x4000
        let low = low & ~(3 << 62) | 2 << 62
        let digits = hex(high) + hex(low)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(digit)
        }
        return text
    }

    private static func hex(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
