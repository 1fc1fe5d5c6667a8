// SPDX-License-Identifier: MIT

/// CPace, suite CPACE-RISTR255-SHA512, initiator and responder (draft-irtf-cfrg-cpace).
///
/// Only the composition is ours; every operation is libsodium's.
enum CPace {
    private static let dsi = Array("CPaceRistretto255".utf8)
    private static let dsiISK = Array("CPaceRistretto255_ISK".utf8)
    /// The input block of SHA-512, which the passcode and the zero padding fill.
    private static let hashBlockBytes = 128

    /// One side's secret and what it sends.
    struct Share: Sendable {
        let scalar: SecretBytes
        /// `Ya` or `Yb`.
        let point: [UInt8]
    }

    /// What both sides have said, in the initiator's and responder's order.
    struct Transcript: Sendable, Equatable {
        var ya: [UInt8]
        var ada: [UInt8]
        var yb: [UInt8]
        var adb: [UInt8]

        var bytes: [UInt8] { lvCat(ya, ada) + lvCat(yb, adb) }
    }

    // MARK: Encodings

    /// A length as unsigned LEB128, then the bytes.
    static func prependLength(_ bytes: [UInt8]) -> [UInt8] {
        var prefix: [UInt8] = []
        var rest = bytes.count
        repeat {
            let low = UInt8(rest & 0x7F)
            rest >>= 7
            prefix.append(rest == 0 ? low : low | 0x80)
        } while rest > 0
        return prefix + bytes
    }

    static func lvCat(_ parts: [UInt8]...) -> [UInt8] {
        parts.flatMap { prependLength($0) }
    }

    // MARK: The steps

    /// The string that the generator is made of; contains the passcode.
    static func generatorString(passcode: SecretBytes, channel: [UInt8], sid: [UInt8]) -> SecretBytes {
        // The passcode's own length stands in one byte: it has 64 bytes at most, and any length below 128 does.
        let prefixed = prependLength([UInt8](repeating: 0, count: passcode.count))
        let head = prependLength(dsi) + prefixed.prefix(prefixed.count - passcode.count)
        let padding = max(0, hashBlockBytes - 1 - prefixed.count - prependLength(dsi).count)
        let tail = lvCat([UInt8](repeating: 0, count: padding), channel, sid)
        return SecretBytes(count: head.count + passcode.count + tail.count) { out in
            out.update(from: head, count: head.count)
            passcode.withPointer { (out + head.count).update(from: $0, count: passcode.count) }
            (out + head.count + passcode.count).update(from: tail, count: tail.count)
        }
    }

    static func generator(passcode: SecretBytes, channel: [UInt8], sid: [UInt8]) -> [UInt8]? {
        let string = generatorString(passcode: passcode, channel: channel, sid: sid)
        return Sodium.element(fromHash: Sodium.sha512 { $0.update(string) })
    }

    static func share(_ scalar: SecretBytes, generator: [UInt8]) -> Share? {
        guard let point = Sodium.multiply(scalar, generator) else { return nil }
        return Share(scalar: scalar, point: point.withBytes { Array($0) })
    }

    /// Nil where the peer's share is no element, or the result is the neutral one (`scalar_mult_vfy`).
    static func sharedElement(_ share: Share, with peer: [UInt8]) -> SecretBytes? {
        Sodium.multiply(share.scalar, peer)
    }

    /// `ISK_IR`, 64 bytes.
    static func intermediateKey(sid: [UInt8], element: SecretBytes, _ transcript: Transcript) -> SecretBytes {
        Sodium.sha512 { hash in
            hash.update(lvCat(dsiISK, sid))
            hash.update([UInt8(element.count)])
            hash.update(element)
            hash.update(transcript.bytes)
        }
    }
}

extension CPace {
    /// `CI`: binds the exchange to the protocol and its service.
    static let channel: [UInt8] = lvCat(
        Array("NearbyDiscoveryKit".utf8), Hexadecimal.bytes(NearbyService.service) ?? [])
}

/// Bytes as two digits each.
enum Hexadecimal {
    /// Hyphens are skipped, so UUIDs are read too; nil where anything else is no pair of digits.
    static func bytes(_ text: String) -> [UInt8]? {
        let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for position in stride(from: 0, to: digits.count, by: 2) {
            guard let high = Character(Unicode.Scalar(digits[position])).hexDigitValue,
                let low = Character(Unicode.Scalar(digits[position + 1])).hexDigitValue
            else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        return bytes
    }
}
