// SPDX-License-Identifier: MIT

/// What a person at a terminal sees: the rows that a program's bytes leave, as far as a line editor needs one.
///
/// Of ECMA-48 it knows what xterm's description has for moving within a line and erasing; other sequences are read over.
struct TerminalScreen {
    private var lines: [[Character]] = [[]]
    private var row = 0
    private var column = 0
    /// Bytes of a character or a sequence that is not whole yet.
    private var pending: [UInt8] = []

    let width: Int

    init(width: Int = 80) { self.width = width }

    /// From the top, without what is blank at their ends.
    var rows: [String] {
        lines.map { line in
            var text = String(line)
            while text.last == " " { text.removeLast() }
            return text
        }
    }

    /// The row in which the cursor is, and how many characters are to its left.
    var cursor: (row: String, column: Int) { (rows[row], column) }

    mutating func take(_ bytes: some Sequence<UInt8>) {
        for byte in bytes {
            pending.append(byte)
            if pending[0] == 0x1B {
                escape()
            } else if byte < 0x20 || byte == 0x7F {
                pending = []
                control(byte)
            } else if let text = String(validating: pending, as: UTF8.self) {
                pending = []
                text.forEach { put($0) }
            } else if pending.count >= 4 {
                pending = []
                put("�")
            }
        }
    }

    private mutating func control(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\r"): column = 0
        case UInt8(ascii: "\n"):
            row += 1
            if row == lines.count { lines.append([]) }
        case 0x08: column = max(0, column - 1)
        default: break
        }
    }

    private mutating func put(_ character: Character) {
        if column == width {
            control(UInt8(ascii: "\n"))
            column = 0
        }
        while lines[row].count <= column { lines[row].append(" ") }
        lines[row][column] = character
        column += 1
    }

    private mutating func escape() {
        guard pending.count >= 2 else { return }
        guard pending[1] == UInt8(ascii: "[") else {
            // Two or three bytes, such as ESC ( B and ESC =.
            if (0x20...0x2F).contains(pending[1]), pending.count < 3 { return }
            pending = []
            return
        }
        guard pending.count > 2, let last = pending.last, (0x40...0x7E).contains(last) else { return }
        let parameters = pending[2..<(pending.count - 1)].split(separator: UInt8(ascii: ";"))
        let number = parameters.first.flatMap { Int(String(decoding: $0, as: UTF8.self)) }
        pending = []
        perform(last, number)
    }

    private mutating func perform(_ command: UInt8, _ number: Int?) {
        let count = max(1, number ?? 1)
        switch command {
        case UInt8(ascii: "C"): column = min(width - 1, column + count)
        case UInt8(ascii: "D"): column = max(0, column - count)
        case UInt8(ascii: "G"): column = min(width, count) - 1
        case UInt8(ascii: "A"): row = max(0, row - count)
        case UInt8(ascii: "K"): eraseInLine(number ?? 0)
        case UInt8(ascii: "J") where number ?? 0 == 0:
            eraseInLine(0)
            lines.removeLast(lines.count - row - 1)
        case UInt8(ascii: "P"): lines[row].removeSubrange(min(column, end)..<min(column + count, end))
        case UInt8(ascii: "@"):
            lines[row].insert(contentsOf: [Character](repeating: " ", count: count), at: min(column, end))
        default: break
        }
    }

    private var end: Int { lines[row].count }

    private mutating func eraseInLine(_ what: Int) {
        switch what {
        case 0: lines[row].removeLast(max(0, end - column))
        case 1: for index in 0..<min(column + 1, end) { lines[row][index] = " " }
        default: lines[row] = []
        }
    }
}
