// SPDX-License-Identifier: MIT

/// What a host says of itself before an extended exchange: 54 bytes, read from the hello characteristic.
package struct Hello: Equatable, Sendable {
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        package static let passcodeNeeded = Flags(rawValue: 1 << 0)
        package static let basicRefused = Flags(rawValue: 1 << 1)
    }

    /// The one version that exists.
    static let version: UInt8 = 0x01

    package var flags: Flags
    /// The largest envelope that the host takes and sends, in bytes.
    package var maximumEnvelope: Int
    /// Names the attempt that builds on this hello; 16 bytes.
    package var sid: [UInt8]
    /// The host's share `Yb`, 32 bytes; whether it is an element shows only when it is used.
    package var share: [UInt8]
    /// What came behind the 54 bytes; ignored, but bound into the keys.
    package var extra: [UInt8] = []

    init(flags: Flags, maximumEnvelope: Int, sid: [UInt8], share: [UInt8]) {
        self.flags = flags
        self.maximumEnvelope = maximumEnvelope
        self.sid = sid
        self.share = share
    }

    /// Reads a hello; bits and bytes that this version does not know are kept and ignored.
    package init(_ bytes: [UInt8]) throws(HelloError) {
        guard let version = bytes.first else { throw .tooShort(0) }
        guard version == Self.version else { throw .unknownVersion(version) }
        guard bytes.count >= ProtocolLimits.helloBytes else { throw .tooShort(bytes.count) }
        maximumEnvelope = bytes[2..<6].reduce(0) { $0 << 8 | Int($1) }
        let allowed = ProtocolLimits.extendedEnvelopeAtLeast...ProtocolLimits.extendedEnvelopeBytes
        guard allowed.contains(maximumEnvelope) else { throw .limitOutOfRange(maximumEnvelope) }
        flags = Flags(rawValue: bytes[1])
        sid = Array(bytes[6..<22])
        share = Array(bytes[22..<54])
        extra = Array(bytes[54...])
    }

    /// `ADb`: all of hello as it was read, but for `sid` and share.
    var associatedData: [UInt8] { head + extra }

    var bytes: [UInt8] { head + sid + share + extra }

    private var head: [UInt8] {
        let limit = UInt32(clamping: maximumEnvelope)
        return [Self.version, flags.rawValue] + withUnsafeBytes(of: limit.bigEndian) { Array($0) }
    }
}

/// Why bytes are no hello that can be used here.
package enum HelloError: Error, Equatable, Sendable {
    /// Fewer than 54 bytes; so many came.
    case tooShort(Int)
    case unknownVersion(UInt8)
    /// The limit that is announced is below 512 or over 65,536 bytes.
    case limitOutOfRange(Int)
}
