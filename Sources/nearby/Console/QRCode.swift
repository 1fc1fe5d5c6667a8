// SPDX-License-Identifier: MIT

import CQRencode
import Glibc

/// A text as a QR code (ISO/IEC 18004), by libqrencode.
struct QRCode: Equatable, Sendable {
    /// Light modules round the code: a reader may not find it without them (ISO/IEC 18004, 5.3.8).
    static let quietZone = 4
    /// Black on white whatever the terminal's colours are, and its own colours again.
    private static let (paper, plain) = ("\u{1B}[38;5;16;48;5;231m", "\u{1B}[0m")

    /// Modules along one side, without the quiet zone.
    let side: Int
    private let modules: [Bool]

    /// Nil where the text is too long for any code, or memory is short.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        // M: a seventh of the code may be covered by a reflection. Version 0: the smallest that fits.
        guard let code = QRcode_encodeData(Int32(clamping: bytes.count), bytes, 0, QR_ECLEVEL_M) else { return nil }
        defer { QRcode_free(code) }
        side = Int(code.pointee.width)
        guard side > 0, let data = code.pointee.data else { return nil }
        modules = UnsafeBufferPointer(start: data, count: side * side).map { $0 & 1 == 1 }
        // The text may be a secret.
        explicit_bzero(data, side * side)
    }

    /// Columns that `lines` take.
    var columns: Int { side + 2 * Self.quietZone }

    /// Whether a module is dark; outside of the code none is.
    func isDark(row: Int, column: Int) -> Bool {
        (0..<side).contains(row) && (0..<side).contains(column) && modules[row * side + column]
    }

    /// Two rows of modules in each line, one above the other, with the quiet zone.
    var lines: [String] {
        stride(from: -Self.quietZone, to: side + Self.quietZone, by: 2).map { row in
            let text = (-Self.quietZone..<side + Self.quietZone).map { column in
                switch (isDark(row: row, column: column), isDark(row: row + 1, column: column)) {
                case (true, true): "█"
                case (true, false): "▀"
                case (false, true): "▄"
                case (false, false): " "
                }
            }
            return Self.paper + text.joined() + Self.plain
        }
    }
}
