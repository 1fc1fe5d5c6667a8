// SPDX-License-Identifier: MIT

import DBus
import Glibc

/// Reads a descriptor line by line on a thread of its own.
enum LineReader {
    /// Lines without their ends; a longer one than `Limits.lineBytes` comes in pieces. `atEnd` comes last, once.
    static func start(
        _ descriptor: Int32,
        line: @escaping @Sendable (String) -> Void,
        atEnd: @escaping @Sendable () -> Void
    ) {
        let isStarted = DetachedThread.start {
            var splitter = LineSplitter()
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = read(descriptor, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                if count <= 0 { break }
                splitter.take(buffer[..<count]).forEach(line)
            }
            if let rest = splitter.rest() { line(rest) }
            atEnd()
        }
        if !isStarted { atEnd() }
    }
}

/// Cuts bytes into lines.
struct LineSplitter {
    private var pending: [UInt8] = []

    mutating func take(_ bytes: some Sequence<UInt8>) -> [String] {
        var lines: [String] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                lines.append(text())
            } else {
                pending.append(byte)
                if pending.count == Limits.lineBytes { lines.append(text()) }
            }
        }
        return lines
    }

    mutating func rest() -> String? { pending.isEmpty ? nil : text() }

    private mutating func text() -> String {
        defer { pending = [] }
        return String(decoding: pending, as: UTF8.self)
    }
}
