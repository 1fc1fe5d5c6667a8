// SPDX-License-Identifier: MIT

import CSodium

/// Where random bytes come from: libsodium, but for vectors and tests.
package struct Entropy: Sendable {
    private let body: @Sendable (UnsafeMutablePointer<UInt8>, Int) -> Void

    /// - Parameter body: writes so many bytes that nobody can foresee.
    init(_ body: @escaping @Sendable (UnsafeMutablePointer<UInt8>, Int) -> Void) {
        self.body = body
    }

    /// The system's generator, through libsodium.
    package static let system = Entropy { randombytes_buf($0, $1) }

    func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            if let memory = buffer.baseAddress {
                memory.initialize(repeating: 0, count: count)
                body(memory, count)
                initialized = count
            }
        }
    }

    func secret(_ count: Int) -> SecretBytes {
        SecretBytes(count: count) { body($0, count) }
    }
}
