// SPDX-License-Identifier: MIT

import Glibc

/// What must hold whatever comes in. Ends the process where it does not, which is how libFuzzer learns of it.
func require(
    _ holds: @autoclosure () -> Bool, _ property: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    if holds() { return }
    let text = "\(file):\(line): does not hold: \(property())\n"
    text.utf8.withContiguousStorageIfAvailable { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    abort()
}

/// The fuzzer's bytes, taken piece by piece; past their end all is zero and empty.
struct FuzzInput {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    var isEmpty: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func word() -> Int { Int(byte()) << 8 | Int(byte()) }

    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func everything() -> [UInt8] {
        defer { rest = [] }
        return Array(rest)
    }
}
