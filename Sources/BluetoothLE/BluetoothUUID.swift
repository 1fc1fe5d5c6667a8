// SPDX-License-Identifier: MIT

/// A 16-, 32- or 128-bit Bluetooth UUID.
///
/// All three widths are one value: `BluetoothUUID(0x180A)` equals the 128-bit UUID
/// `0000180A-0000-1000-8000-00805F9B34FB`, because the short forms stand for that expansion
/// (Bluetooth Core Specification, Vol 3, Part B, 2.5.1).
public struct BluetoothUUID: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    private static let baseHigh: UInt64 = 0x0000_0000_0000_1000
    private static let baseLow: UInt64 = 0x8000_0080_5F9B_34FB

    /// A UUID assigned by the Bluetooth SIG, such as `0x180A`.
    public init(_ short: UInt16) {
        self.init(UInt32(short))
    }

    /// A 32-bit UUID assigned by the Bluetooth SIG.
    public init(_ short: UInt32) {
        self.init(high: UInt64(short) << 32 | Self.baseHigh, low: Self.baseLow)
    }

    private init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The UUID of these 16 bytes in printed (big-endian) order; `nil` unless there are exactly 16.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for (index, byte) in bytes.enumerated() {
            if index < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
        }
        self.init(high: high, low: low)
    }

    /// The 16 bytes in printed (big-endian) order. In the air they travel the other way round.
    public var bytes: [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(16)
        for word in [high, low] {
            for shift in stride(from: 56, through: 0, by: -8) {
                result.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
            }
        }
        return result
    }

    /// The shortest form's width in bits: 16, 32 or 128.
    public var bitWidth: Int {
        guard low == Self.baseLow, high & 0xFFFF_FFFF == Self.baseHigh else { return 128 }
        return high >> 48 == 0 ? 16 : 32
    }

    /// The 36-character form in lower case, as BlueZ writes UUIDs.
    public var longDescription: String {
        let digits = Self.hex(high, digits: 16) + Self.hex(low, digits: 16)
        var result = ""
        result.reserveCapacity(36)
        for (index, digit) in digits.enumerated() {
            if index == 8 || index == 12 || index == 16 || index == 20 { result.append("-") }
            result.append(digit)
        }
        return result
    }

    private static func hex(_ value: UInt64, digits: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: digits - text.utf8.count) + text
    }
}

extension BluetoothUUID: LosslessStringConvertible {
    /// Reads `180A`, `0x180A`, `12345678` or the 36-character form, in either case; `nil` for anything else.
    public init?(_ description: String) {
        var text = Substring(description)
        if text.hasPrefix("0x") || text.hasPrefix("0X") { text = text.dropFirst(2) }
        switch text.utf8.count {
        case 4, 8:
            guard text.utf8.allSatisfy({ $0.hexValue != nil }), let short = UInt32(text, radix: 16) else { return nil }
            self.init(short)
        case 36:
            var high: UInt64 = 0
            var low: UInt64 = 0
            for (index, unit) in text.utf8.enumerated() {
                if index == 8 || index == 13 || index == 18 || index == 23 {
                    guard unit == UInt8(ascii: "-") else { return nil }
                } else {
                    guard let digit = unit.hexValue else { return nil }
                    if index < 18 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
                }
            }
            self.init(high: high, low: low)
        default:
            return nil
        }
    }

    /// The shortest form in upper case: `180A`, or all 36 characters.
    public var description: String {
        switch bitWidth {
        case 16: Self.hex(high >> 32, digits: 4).uppercased()
        case 32: Self.hex(high >> 32, digits: 8).uppercased()
        default: longDescription.uppercased()
        }
    }
}

extension UInt8 {
    /// What a hexadecimal digit in ASCII, in either case, stands for.
    var hexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension BluetoothUUID: Comparable {
    public static func < (left: Self, right: Self) -> Bool {
        left.high == right.high ? left.low < right.low : left.high < right.high
    }
}

extension BluetoothUUID: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: UInt16) { self.init(value) }
}
