// SPDX-License-Identifier: MIT

/// Text in columns that line up.
enum TextTable {
    /// One line for each row: cells padded to the widest of their column, two spaces between, none at the end.
    static func lines(_ rows: [[String]]) -> [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { column < $0.count ? PlainText.width($0[column]) : 0 }.max() ?? 0
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell
                let isLast = row[(column + 1)...].allSatisfy(\.isEmpty)
                if isLast { break }
                line += String(repeating: " ", count: widths[column] - PlainText.width(cell) + 2)
            }
            return line
        }
    }

    /// `label  text`, labels padded so that single lines printed over time line up.
    static func line(_ label: String, _ text: String, width: Int = 10) -> String {
        label + String(repeating: " ", count: max(2, width + 2 - PlainText.width(label))) + text
    }
}
