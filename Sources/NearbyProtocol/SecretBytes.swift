// SPDX-License-Identifier: MIT

import CSodium

/// Bytes that are wiped when nobody holds them any more.
///
/// A class, so that copies of a state machine share the one place where the bytes stand.
final class SecretBytes: @unchecked Sendable {
    // Unchecked because of the pointer: the memory is written only in `init`, before anybody else can see it, and in
    // `deinit`, when nobody can any more.
    private let memory: UnsafeMutablePointer<UInt8>
    let count: Int

    /// - Parameter fill: writes all `count` bytes, which are zero before.
    init(count: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) {
        self.count = count
        // Never of no size, so that there is always an address.
        memory = UnsafeMutablePointer.allocate(capacity: max(count, 1))
        memory.initialize(repeating: 0, count: max(count, 1))
        fill(memory)
    }

    convenience init(copying bytes: some Collection<UInt8>) {
        let count = bytes.count
        self.init(count: count) { memory in
            _ = UnsafeMutableBufferPointer(start: memory, count: count).update(fromContentsOf: bytes)
        }
    }

    /// No secret at all, where none is needed.
    static let empty = SecretBytes(count: 0) { _ in }

    deinit {
        sodium_memzero(memory, count)
        memory.deallocate()
    }

    func withBytes<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
        body(UnsafeBufferPointer(start: memory, count: count))
    }

    /// The first of `count` bytes.
    func withPointer<R>(_ body: (UnsafePointer<UInt8>) -> R) -> R {
        body(memory)
    }

    /// In constant time, but for the lengths.
    func isEqual(to other: SecretBytes) -> Bool {
        count == other.count && sodium_memcmp(memory, other.memory, count) == 0
    }
}
