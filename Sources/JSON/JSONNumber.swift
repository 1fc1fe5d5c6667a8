// SPDX-License-Identifier: MIT

/// A JSON number as its text, so that it is written as it was read. Equality is that of the text.
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
    /// The text, valid by the JSON grammar.
    public let text: String

    /// For the reader, which has checked the grammar.
    init(checked text: String) {
        self.text = text
    }

    public init(_ value: Int) {
        text = String(value)
    }

    /// Nil for NaN and the infinities.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        // Swift's shortest description is JSON already, but for the exponent's sign, which JSON allows.
        text = value.description
    }

    public var description: String { text }

    /// The number as an integer, whatever its form; nil where it has a fraction or does not fit.
    public var int: Int? {
        if case .integer(let value) = integer { value } else { nil }
    }

    /// The nearest double; nil where the number is too large for one.
    public var double: Double? {
        guard let value = Double(text), value.isFinite else { return nil }
        return value
    }

    package enum Integer: Equatable {
        case integer(Int)
        case tooLarge
        case fraction
    }

    /// Exact, and linear in the text's length: the exponent never makes digits.
    package var integer: Integer {
        var digits: [UInt8] = []
        var scale = 0
        var exponent = 0
        var isNegative = false
        var isExponentNegative = false
        enum Part { case whole, fraction, exponent }
        var part = Part.whole
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "-"):
                if part == .exponent { isExponentNegative = true } else { isNegative = true }
            case UInt8(ascii: "."):
                part = .fraction
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                part = .exponent
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                let digit = byte - UInt8(ascii: "0")
                if part == .exponent {
                    exponent = min(exponent * 10 + Int(digit), 1_000_000_000)
                } else {
                    if part == .fraction { scale += 1 }
                    if !(digits.isEmpty && digit == 0) { digits.append(digit) }
                }
            default:
                break
            }
        }
        while digits.last == 0 {
            digits.removeLast()
            scale -= 1
        }
        if digits.isEmpty { return .integer(0) }
        let zeros = (isExponentNegative ? -exponent : exponent) - scale
        if zeros < 0 { return .fraction }
        if digits.count + zeros > 19 { return .tooLarge }
        var value = 0
        for digit in digits + [UInt8](repeating: 0, count: zeros) {
            let (shifted, overflow) = value.multipliedReportingOverflow(by: 10)
            let (next, overflow2) =
                isNegative
                ? shifted.subtractingReportingOverflow(Int(digit)) : shifted.addingReportingOverflow(Int(digit))
            if overflow || overflow2 { return .tooLarge }
            value = next
        }
        return .integer(value)
    }
}
