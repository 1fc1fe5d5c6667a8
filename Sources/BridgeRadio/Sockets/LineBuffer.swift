// SPDX-License-Identifier: MIT

/// Cuts a stream of bytes into lines, and keeps no more of it than one line of the allowed length.
struct LineBuffer {
    private let limit: Int
    private var bytes: [UInt8] = []
    /// Where the next search for a line's end begins.
    private var searched = 0
    /// A line was too long: nothing behind it makes sense.
    private(set) var isBroken = false

    init(limit: Int) { self.limit = limit }

    /// - Returns: the lines that are complete by now, without their ends (`\n` or `\r\n`); empty ones are left out.
    mutating func take(_ chunk: some Collection<UInt8>) -> [[UInt8]] {
        guard !isBroken else { return [] }
        bytes.append(contentsOf: chunk)
        var lines: [[UInt8]] = []
        var start = 0
        while let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) {
            var line = bytes[start..<end]
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            start = end + 1
            searched = start
            guard line.count <= limit else {
                isBroken = true
                bytes = []
                return lines
            }
            if !line.isEmpty { lines.append(Array(line)) }
        }
        bytes.removeFirst(start)
        searched = bytes.count
        // One more for a carriage return.
        if bytes.count > limit + 1 {
            isBroken = true
            bytes = []
        }
        return lines
    }
}
