// SPDX-License-Identifier: MIT

extension String {
    /// The start that fits so many bytes of UTF-8, cut between two scalars.
    ///
    /// Not `prefix`: that counts characters, and one can have any number of bytes.
    package func clipped(toBytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(utf8.startIndex, offsetBy: max(0, limit))
        while end > utf8.startIndex, utf8[end] & 0xC0 == 0x80 { end = utf8.index(before: end) }
        return String(self[..<end])
    }
}
