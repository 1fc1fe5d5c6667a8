// SPDX-License-Identifier: MIT

import CSodium

/// libsodium's operations, as far as the protocol needs them, with Swift's bounds.
///
/// Thread safety: "sodium_init() ... can be called from any thread"; all functions used here are pure but for the
/// random generator, which is thread-safe after it (libsodium documentation, "Usage").
enum Sodium {
    /// Whether the library is ready. Every way into the extended profile asks first.
    static let isReady = sodium_init() >= 0

    static let pointBytes = Int(crypto_core_ristretto255_BYTES)
    static let scalarBytes = Int(crypto_core_ristretto255_SCALARBYTES)
    static let keyBytes = Int(crypto_aead_chacha20poly1305_ietf_KEYBYTES)
    static let nonceBytes = Int(crypto_aead_chacha20poly1305_ietf_NPUBBYTES)
    static let authenticationBytes = Int(crypto_aead_chacha20poly1305_ietf_ABYTES)

    // MARK: Hashes

    /// SHA-512 over parts, one after the other; the digest is secret where a part is.
    static func sha512(_ parts: (inout SHA512) -> Void) -> SecretBytes {
        var hash = SHA512()
        parts(&hash)
        return hash.finish()
    }

    struct SHA512 {
        private var state = crypto_hash_sha512_state()

        init() { _ = crypto_hash_sha512_init(&state) }

        mutating func update(_ bytes: [UInt8]) {
            _ = crypto_hash_sha512_update(&state, bytes, UInt64(bytes.count))
        }

        mutating func update(_ secret: SecretBytes) {
            secret.withPointer { _ = crypto_hash_sha512_update(&state, $0, UInt64(secret.count)) }
        }

        mutating func finish() -> SecretBytes {
            let digest = SecretBytes(count: Int(crypto_hash_sha512_BYTES)) { out in
                _ = crypto_hash_sha512_final(&state, out)
            }
            sodium_memzero(&state, MemoryLayout.size(ofValue: state))
            return digest
        }
    }

    /// BLAKE2b, 32 bytes: names a request in the memory of answers.
    static func genericHash(_ bytes: [UInt8]) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: 32)
        crypto_generichash(&out, out.count, bytes, UInt64(bytes.count), nil, 0)
        return out
    }

    // MARK: ristretto255

    /// A scalar from 64 random bytes, reduced; never zero but with probability 2^-252, and then refused where used.
    static func scalar(_ entropy: Entropy) -> SecretBytes {
        let wide = entropy.secret(Int(crypto_core_ristretto255_NONREDUCEDSCALARBYTES))
        return SecretBytes(count: scalarBytes) { out in
            wide.withPointer { wide in
                crypto_core_ristretto255_scalar_reduce(
                    out, wide)
            }
        }
    }

    /// The element that 64 uniform bytes map to.
    static func element(fromHash hash: SecretBytes) -> [UInt8]? {
        guard hash.count == Int(crypto_core_ristretto255_HASHBYTES) else { return nil }
        var point = [UInt8](repeating: 0, count: pointBytes)
        let result = hash.withPointer {
            crypto_core_ristretto255_from_hash(&point, $0)
        }
        return result == 0 ? point : nil
    }

    /// Scalar times element; nil where the bytes are no element or the result is the neutral one.
    static func multiply(_ scalar: SecretBytes, _ point: [UInt8]) -> SecretBytes? {
        guard scalar.count == scalarBytes, point.count == pointBytes else { return nil }
        var result: CInt = -1
        let product = SecretBytes(count: pointBytes) { out in
            result = scalar.withPointer {
                crypto_scalarmult_ristretto255(
                    out, $0, point)
            }
        }
        return result == 0 ? product : nil
    }

    // MARK: Keys and sealing

    /// `crypto_kdf_derive_from_key` from the first 32 bytes of the master.
    ///
    /// - Parameter context: 8 ASCII bytes.
    static func subkey(_ number: UInt64, context: StaticString, of master: SecretBytes) -> SecretBytes? {
        guard master.count >= Int(crypto_kdf_KEYBYTES), context.utf8CodeUnitCount == Int(crypto_kdf_CONTEXTBYTES)
        else { return nil }
        var result: CInt = -1
        let key = SecretBytes(count: keyBytes) { out in
            result = context.withUTF8Buffer { context in
                context.withMemoryRebound(to: CChar.self) { context in
                    guard let name = context.baseAddress else { return -1 }
                    return master.withPointer { crypto_kdf_derive_from_key(out, keyBytes, number, name, $0) }
                }
            }
        }
        return result == 0 ? key : nil
    }

    static func seal(
        _ plaintext: [UInt8], key: SecretBytes, nonce: [UInt8], associatedData: [UInt8]
    ) -> [UInt8]? {
        guard key.count == keyBytes, nonce.count == nonceBytes else { return nil }
        var sealed = [UInt8](repeating: 0, count: plaintext.count + authenticationBytes)
        var length: UInt64 = 0
        let result = key.withPointer {
            crypto_aead_chacha20poly1305_ietf_encrypt(
                &sealed, &length, plaintext, UInt64(plaintext.count), associatedData, UInt64(associatedData.count),
                nil, nonce, $0)
        }
        return result == 0 && length == sealed.count ? sealed : nil
    }

    static func open(
        _ sealed: [UInt8], key: SecretBytes, nonce: [UInt8], associatedData: [UInt8]
    ) -> [UInt8]? {
        guard key.count == keyBytes, nonce.count == nonceBytes, sealed.count >= authenticationBytes else { return nil }
        // One byte more than needed: an empty array's pointer may be nil.
        var plaintext = [UInt8](repeating: 0, count: sealed.count - authenticationBytes + 1)
        var length: UInt64 = 0
        let result = key.withPointer {
            crypto_aead_chacha20poly1305_ietf_decrypt(
                &plaintext, &length, nil, sealed, UInt64(sealed.count), associatedData, UInt64(associatedData.count),
                nonce, $0)
        }
        guard result == 0, length == plaintext.count - 1 else { return nil }
        plaintext.removeLast()
        return plaintext
    }
}
