// SPDX-License-Identifier: MIT

import Glibc

/// The system's words for an `errno`.
func systemMessage(_ error: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 256)
    // The XSI form, which Glibc's module imports, writes into the buffer.
    _ = strerror_r(error, &buffer, buffer.count)
    let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return bytes.isEmpty ? "error \(error)" : String(decoding: bytes, as: UTF8.self)
}
