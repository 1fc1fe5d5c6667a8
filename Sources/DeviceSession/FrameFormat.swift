// SPDX-License-Identifier: MIT

/// A checksum of one byte.
public enum Checksum: String, Sendable, Hashable, CaseIterable {
    /// Exclusive or of all bytes.
    case xor
    /// The sum of all bytes, modulo 256.
    case sum
    /// What makes the sum of all bytes and the checksum 0, modulo 256.
    case twosComplementOfSum

    public func value(of bytes: some Sequence<UInt8>) -> UInt8 { value(from: 0, to: bytes.reduce(0, running)) }

    /// A sum of all bytes so far, with one more.
    func running(_ sum: UInt8, _ byte: UInt8) -> UInt8 {
        switch self {
        case .xor: sum ^ byte
        case .sum, .twosComplementOfSum: sum &+ byte
        }
    }

    /// The value of the bytes between two running sums.
    func value(from before: UInt8, to after: UInt8) -> UInt8 {
        switch self {
        case .xor: after ^ before
        case .sum: after &- before
        case .twosComplementOfSum: before &- after
        }
    }
}

/// Binary frames: start, header, length, payload, checksum, end.
public struct FrameFormat: Sendable, Hashable {
    public enum ByteOrder: String, Sendable, Hashable {
        case bigEndian, littleEndian
    }

    /// What the checksum is made of.
    public enum Coverage: String, Sendable, Hashable {
        case payload
        /// Header, length and payload.
        case lengthAndPayload
        /// Start, header, length and payload.
        case everything
    }

    /// 1 to 8 bytes.
    public var start: [UInt8]
    /// Bytes between start and length, 0 to 16, such as a command's number. They are delivered ahead of the payload.
    public var headerBytes: Int
    /// Bytes of the payload's length, 1 to 4.
    public var lengthBytes: Int
    public var byteOrder: ByteOrder
    public var checksum: Checksum
    public var coverage: Coverage
    /// 0 to 8 bytes.
    public var end: [UInt8]
    /// What is longer is no frame, 1 to 65,536 bytes.
    public var longestPayload: Int
    /// A frame of which nothing more has come for so long is given up.
    public var patience: Duration

    public init(
        start: [UInt8],
        headerBytes: Int = 0,
        lengthBytes: Int = 1,
        byteOrder: ByteOrder = .bigEndian,
        checksum: Checksum,
        coverage: Coverage = .lengthAndPayload,
        end: [UInt8] = [],
        longestPayload: Int = 4_096,
        patience: Duration = .seconds(1)
    ) {
        self.start = start
        self.headerBytes = headerBytes
        self.lengthBytes = lengthBytes
        self.byteOrder = byteOrder
        self.checksum = checksum
        self.coverage = coverage
        self.end = end
        self.longestPayload = longestPayload
        self.patience = patience
    }

    /// `{`, length of three bytes, payload, the two's complement of the sum, `}`: `7B 00 00 01 00 FF 7D` carries `00`.
    public static let twosComplement = braces(.twosComplementOfSum)
    /// The same with the sum: `7B 00 00 01 00 01 7D`.
    public static let sum = braces(.sum)
    /// The same with the exclusive or: `7B 00 00 01 00 01 7D`.
    public static let xor = braces(.xor)

    private static func braces(_ checksum: Checksum) -> FrameFormat {
        FrameFormat(start: [0x7B], lengthBytes: 3, checksum: checksum, end: [0x7D])
    }

    /// A frame around `payload`, whose first `headerBytes` bytes are the header.
    ///
    /// - Throws: `invalidArgument` where the payload has no room for the header, or is longer than allowed.
    public func frame(_ payload: [UInt8]) throws(DeviceSessionError) -> [UInt8] {
        if let flaw { throw DeviceSessionError(.invalidArgument, flaw) }
        guard payload.count >= headerBytes else {
            throw DeviceSessionError(.invalidArgument, "the payload has no room for a header of \(headerBytes) bytes")
        }
        let body = payload.count - headerBytes
        let longest = min(longestPayload, lengthBytes < 4 ? (1 << (8 * lengthBytes)) - 1 : Int.max)
        guard body <= longest else {
            throw DeviceSessionError(.invalidArgument, "the payload is \(body) bytes, and \(longest) fit a frame")
        }
        var content = Array(payload.prefix(headerBytes))
        let shifts = (0..<lengthBytes).map { 8 * $0 }
        for shift in byteOrder == .littleEndian ? shifts : shifts.reversed() {
            content.append(UInt8(truncatingIfNeeded: body >> shift))
        }
        content += payload.dropFirst(headerBytes)
        let frame = start + content
        return frame + [checksum.value(of: frame.dropFirst(firstCovered))] + end
    }

    /// How far into a frame that begins which the checksum covers.
    var firstCovered: Int {
        switch coverage {
        case .payload: start.count + headerBytes + lengthBytes
        case .lengthAndPayload: start.count
        case .everything: 0
        }
    }

    /// What is wrong with it; `nil`: nothing.
    var flaw: String? {
        if !(1...8).contains(start.count) { return "a frame's start has 1 to 8 bytes" }
        if !(0...16).contains(headerBytes) { return "a frame's header has 0 to 16 bytes" }
        if !(1...4).contains(lengthBytes) { return "a frame's length has 1 to 4 bytes" }
        if end.count > 8 { return "a frame's end has at most 8 bytes" }
        if !(1...Limits.payloadBytes).contains(longestPayload) {
            return "a frame's payload has 1 to \(Limits.payloadBytes) bytes"
        }
        return nil
    }
}
