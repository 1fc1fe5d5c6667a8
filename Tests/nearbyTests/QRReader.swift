// SPDX-License-Identifier: MIT

@testable import nearby

/// Reads a code of versions 1 to 3, level M and byte mode, after ISO/IEC 18004; shares nothing with who wrote it.
/// It corrects no errors, since there must be none.
struct QRReader {
    struct Unreadable: Error {
        let why: String
    }

    private let code: QRCode
    private let side: Int

    init(_ code: QRCode) throws {
        self.code = code
        side = code.side
        guard [21, 25, 29].contains(side) else { throw Unreadable(why: "not version 1 to 3: \(side) modules") }
    }

    func text() throws -> String {
        try checkPatterns()
        let mask = try readMask()
        var bits = placed().map { row, column in
            code.isDark(row: row, column: column) != Self.isFlipped(mask, row, column)
        }[...]
        func number(_ count: Int) -> Int {
            defer { bits = bits.dropFirst(count) }
            return bits.prefix(count).reduce(0) { $0 << 1 | ($1 ? 1 : 0) }
        }
        guard number(4) == 0b0100 else { throw Unreadable(why: "not in byte mode") }
        let count = number(8)
        return String(decoding: (0..<count).map { _ in UInt8(number(8)) }, as: UTF8.self)
    }

    /// Three finders with their light border, the timing lines, and the dark module (6.3).
    private func checkPatterns() throws {
        for (top, left) in [(0, 0), (0, side - 7), (side - 7, 0)] {
            for row in -1...7 {
                for column in -1...7 {
                    let ring = max(abs(row - 3), abs(column - 3))
                    guard code.isDark(row: top + row, column: left + column) == (ring != 2 && ring != 4) else {
                        throw Unreadable(why: "no finder at \(top), \(left)")
                    }
                }
            }
        }
        for place in 8..<side - 8 {
            let isDark = place.isMultiple(of: 2)
            guard code.isDark(row: 6, column: place) == isDark, code.isDark(row: place, column: 6) == isDark else {
                throw Unreadable(why: "no timing line")
            }
        }
        guard code.isDark(row: side - 8, column: 8) else { throw Unreadable(why: "no dark module") }
    }

    /// The format information beside the first finder: level, mask and a BCH code, under a mask of their own (7.9).
    private func readMask() throws -> Int {
        let places =
            (0...5).map { (8, $0) } + [(8, 7), (8, 8), (7, 8)] + (0...5).reversed().map { ($0, 8) }
        let word = places.reduce(0) { $0 << 1 | (code.isDark(row: $1.0, column: $1.1) ? 1 : 0) } ^ 0b10101_00000_10010
        var rest = word
        for shift in (0...4).reversed() where rest & (1 << (shift + 10)) != 0 { rest ^= 0b101_0011_0111 << shift }
        guard rest == 0 else { throw Unreadable(why: "the format is damaged") }
        guard word >> 13 == 0b00 else { throw Unreadable(why: "not level M") }
        return word >> 10 & 0b111
    }

    /// Where the bits stand, in their order: two columns at a time from the right, up and down in turns (7.7.3).
    private func placed() -> [(Int, Int)] {
        var (places, isUp) = ([(Int, Int)](), true)
        for right in [Int](stride(from: side - 1, to: 6, by: -2)) + [5, 3, 1] {
            for row in isUp ? Array((0..<side).reversed()) : Array(0..<side) {
                for column in [right, right - 1] where !isFunction(row, column) { places.append((row, column)) }
            }
            isUp.toggle()
        }
        return places
    }

    private func isFunction(_ row: Int, _ column: Int) -> Bool {
        let isFinder = row < 9 && column < 9 || row < 9 && column >= side - 8 || row >= side - 8 && column < 9
        let alignment = side - 7
        let isAlignment = side > 21 && abs(row - alignment) <= 2 && abs(column - alignment) <= 2
        return isFinder || isAlignment || row == 6 || column == 6
    }

    /// The mask patterns (7.8.2).
    private static func isFlipped(_ mask: Int, _ row: Int, _ column: Int) -> Bool {
        switch mask {
        case 0: (row + column) % 2 == 0
        case 1: row % 2 == 0
        case 2: column % 3 == 0
        case 3: (row + column) % 3 == 0
        case 4: (row / 2 + column / 3) % 2 == 0
        case 5: row * column % 2 + row * column % 3 == 0
        case 6: (row * column % 2 + row * column % 3) % 2 == 0
        default: ((row + column) % 2 + row * column % 3) % 2 == 0
        }
    }
}
