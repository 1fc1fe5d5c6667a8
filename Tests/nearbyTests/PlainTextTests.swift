// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit
import Testing

@testable import nearby

@Suite struct PlainTextTests {
    @Test(arguments: [
        ("Anna's Pi", "Anna's Pi"),
        ("Küche 台所 🏠", "Küche 台所 🏠"),
        ("\u{1B}[2J\u{1B}[31mred", "\\u{1b}[2J\\u{1b}[31mred"),
        ("\u{1B}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
        ("\u{9B}31m", "\\u{9b}31m"),
        ("a\r\nb\tc\u{8}", "a\\u{d}\\u{a}b\\u{9}c\\u{8}"),
        ("\u{7F}\u{0}", "\\u{7f}\\u{0}"),
        ("evil\u{202E}gpj.exe", "evil\\u{202e}gpj.exe"),
        (
            "\u{2066}\u{200B}\u{FEFF}\u{2028}\u{E0041}\u{E000}",
            "\\u{2066}\\u{200b}\\u{feff}\\u{2028}\\u{e0041}\\u{e000}"
        ),
        ("👩\u{200D}💻", "👩\u{200D}💻"),
        ("plan.pdf\u{FE0F}\u{FE00}", "plan.pdf\\u{fe0f}\\u{fe00}"),
        ("a\u{E0100}\u{E01EF}\u{34F}\u{3164}", "a\\u{e0100}\\u{e01ef}\\u{34f}\\u{3164}"),
        ("❤\u{FE0F}", "❤\u{FE0F}"),
        ("❤\u{FE0F}\u{FE0F}1\u{FE0F}", "❤\u{FE0F}\\u{fe0f}1\\u{fe0f}"),
    ])
    func showsControlsInsteadOfSendingThem(text: String, expected: String) {
        // By scalars: two texts with other selectors may be equal as characters.
        #expect(PlainText.printable(text).unicodeScalars.elementsEqual(expected.unicodeScalars))
        #expect(PlainText.isPlain(text) == text.unicodeScalars.elementsEqual(expected.unicodeScalars))
    }

    @Test func cutsLongTextOff() {
        #expect(PlainText.printable("abcdef", limit: 3) == "abc…")
        #expect(PlainText.printable("abc", limit: 3) == "abc")
        let zalgo = "a" + String(repeating: "\u{301}", count: 100_000)
        #expect(PlainText.printable(zalgo).unicodeScalars.count == Limits.printedText + 1)
    }

    @Test(arguments: [("abc", 3), ("台所", 4), ("e\u{301}", 1), ("", 0)])
    func measuresColumns(text: String, columns: Int) {
        #expect(PlainText.width(text) == columns)
    }

    @Test(arguments: [("abcdef", 4, "abc…"), ("abcd", 4, "abcd"), ("台所台所", 5, "台所…"), ("abc", 0, "")])
    func clipsToColumns(text: String, columns: Int, expected: String) {
        #expect(PlainText.clipped(text, columns: columns) == expected)
    }

    @Test func alignsColumns() {
        let lines = TextTable.lines([["NAME", "RSSI", ""], ["台所", "-4", "x"], ["a", "", ""]])
        #expect(lines == ["NAME  RSSI", "台所  -4    x", "a"])
    }

    @Test func jsonLinesAreHarmlessAndStillTheSameJSON() throws {
        let object: JSONObject = ["name": "\u{1B}[31m\u{9B}1m\u{202E}\u{E0041}é\u{7F}\n", "n": 1]
        let line = JSONLine.text(object)
        #expect(line == #"{"name":"\u001b[31m\u009b1m\u202e\udb40\udc41é\u007f\n","n":1}"#)
        #expect(try JSONObject(parsing: [UInt8](line.utf8)) == object)
        let signs = JSONLine.text(["name": "❤\u{FE0F}a\u{FE0F}"])
        #expect(signs.unicodeScalars.elementsEqual(#"{"name":"❤\#u{FE0F}a\ufe0f"}"#.unicodeScalars))
    }
}
