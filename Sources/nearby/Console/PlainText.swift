// SPDX-License-Identifier: MIT

/// Makes text from strangers harmless on a terminal.
///
/// A host's name, a reject's message and a payload come from whoever is in radio range. Escape sequences in them could
/// rewrite what is on the screen or type into the shell, and direction overrides could make a text read as another, so
/// everything that is not plain is shown as `\u{1b}`.
enum PlainText {
    static func printable(_ text: String, limit: Int = Limits.printedText) -> String {
        var result = ""
        for (count, (scalar, isPlain)) in scalars(text).enumerated() {
            if count == limit { return result + "…" }
            if isPlain {
                result.unicodeScalars.append(scalar)
            } else {
                result += "\\u{\(String(scalar.value, radix: 16))}"
            }
        }
        return result
    }

    static func quoted(_ text: String) -> String {
        "\u{201C}\(printable(text, limit: Limits.quotedValue))\u{201D}"
    }

    /// Whether it is shown as it is.
    static func isPlain(_ text: String) -> Bool { scalars(text).allSatisfy(\.isPlain) }

    /// Plain, and all of it is seen: no two such names look alike because one has more characters than it shows.
    static func isVisible(_ text: String) -> Bool {
        isPlain(text) && !text.unicodeScalars.contains(where: \.properties.isDefaultIgnorableCodePoint)
    }

    /// A text's scalars, and whether each is plain where it stands.
    static func scalars(_ text: String) -> some Sequence<(scalar: Unicode.Scalar, isPlain: Bool)> {
        sequence(state: (left: text.unicodeScalars.makeIterator(), previous: Unicode.Scalar?.none)) { state in
            guard let scalar = state.left.next() else { return nil }
            defer { state.previous = scalar }
            return (scalar, isPlain(scalar, behind: state.previous))
        }
    }

    /// Not: controls (C0, DEL, C1), format characters (directions, zero width, tags), line and paragraph separators,
    /// variation selectors and others that are not seen, private and unassigned code points.
    private static func isPlain(_ scalar: Unicode.Scalar, behind previous: Unicode.Scalar?) -> Bool {
        if scalar.value < 0x7F { return scalar.value >= 0x20 }
        switch scalar.value {
        case 0x200D:
            // The joiner of emoji and of several scripts: a text that is only shown may have it.
            return true
        case 0xFE0F:
            // Makes an emoji of a sign, such as a heart, and is typed with it.
            return previous.map { $0.value > 0x7F && $0.properties.isEmoji } ?? false
        default:
            break
        }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
            return false
        default:
            return !scalar.properties.isDefaultIgnorableCodePoint
        }
    }

    /// How many terminal columns a text of plain scalars takes, about: wide East Asian characters and emoji take two.
    static func width(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { sum, scalar in
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark, .format: sum
            default: sum + (isWide(scalar) ? 2 : 1)
            }
        }
    }

    private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF,
            0x20000...0x3FFFD:
            true
        default: false
        }
    }

    /// The start of a text that fits so many columns, with an ellipsis where something was cut off.
    static func clipped(_ text: String, columns: Int) -> String {
        guard width(text) > columns else { return text }
        var result = ""
        for character in text {
            let next = result + String(character)
            if width(next) > columns - 1 { break }
            result = next
        }
        return columns > 0 ? result + "…" : ""
    }
}
