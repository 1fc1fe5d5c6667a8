// SPDX-License-Identifier: MIT

/// The first two bytes of a client's share: whose frame it is.
package struct FrameTag: Hashable, Sendable, CustomStringConvertible {
    package let high: UInt8
    package let low: UInt8

    package init(high: UInt8, low: UInt8) {
        self.high = high
        self.low = low
    }

    /// Of a client's share; nil where that is shorter than two bytes.
    init?(share: [UInt8]) {
        guard share.count >= 2 else { return nil }
        self.init(high: share[0], low: share[1])
    }

    var bytes: [UInt8] { [high, low] }

    package var description: String {
        let value = String(UInt16(high) << 8 | UInt16(low), radix: 16)
        return String(repeating: "0", count: 4 - value.count) + value
    }
}

/// One piece of a message: `[flags][tag hi][tag lo][seq] data…`.
struct Frame: Equatable, Sendable {
    var moreFollows: Bool
    var isPlaintext: Bool
    var tag: FrameTag
    var sequence: UInt8
    var data: ArraySlice<UInt8>

    private static let moreBit: UInt8 = 1 << 0
    private static let plaintextBit: UInt8 = 1 << 1

    init(_ bytes: [UInt8]) throws(FrameFault) {
        guard bytes.count >= ProtocolLimits.frameHeader else { throw .tooShort }
        let flags = bytes[0]
        guard flags & ~(Self.moreBit | Self.plaintextBit) == 0 else { throw .unknownFlags }
        moreFollows = flags & Self.moreBit != 0
        isPlaintext = flags & Self.plaintextBit != 0
        tag = FrameTag(high: bytes[1], low: bytes[2])
        sequence = bytes[3]
        data = bytes[ProtocolLimits.frameHeader...]
        guard !(moreFollows && data.isEmpty) else { throw .emptyBeforeEnd }
    }

    init(moreFollows: Bool, isPlaintext: Bool, tag: FrameTag, sequence: UInt8, data: ArraySlice<UInt8>) {
        self.moreFollows = moreFollows
        self.isPlaintext = isPlaintext
        self.tag = tag
        self.sequence = sequence
        self.data = data
    }

    var bytes: [UInt8] {
        let flags = (moreFollows ? Self.moreBit : 0) | (isPlaintext ? Self.plaintextBit : 0)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(ProtocolLimits.frameHeader + data.count)
        bytes += [flags, tag.high, tag.low, sequence]
        bytes += data
        return bytes
    }
}

/// What is wrong with a frame, or with it at this place.
package enum FrameFault: String, Error, Equatable, Sendable {
    /// Fewer than 4 bytes.
    case tooShort
    /// Flags that this version does not know.
    case unknownFlags
    /// No data, and yet more is to follow.
    case emptyBeforeEnd
    /// Not the frame that was to come next: a gap or a repeat. The message so far is dropped.
    case outOfOrder
    /// The plaintext flag differs from the message's first frame's, or is not allowed in this direction.
    case wrongPlaintextFlag
    /// The message is longer than it may be.
    case tooLong
    /// The message did not end in 60 s.
    case tooSlow
    /// As many half messages as may be are there.
    case tooManyMessages
    /// The tag is in use by another device.
    case tagInUse
}

/// Cuts a message into frames.
struct FrameWriter: Equatable, Sendable {
    let tag: FrameTag
    let message: [UInt8]
    private let isPlaintext: Bool
    private let dataBytes: Int
    /// How much of the message the frames so far carry, in bytes.
    private(set) var position = 0
    private var sequence: UInt8 = 0
    private(set) var isDone = false

    /// - Parameter frameBytes: the largest frame, header included; below 5 counts as 5.
    init(_ message: [UInt8], tag: FrameTag, isPlaintext: Bool = false, frameBytes: Int) {
        self.tag = tag
        self.message = message
        self.isPlaintext = isPlaintext
        dataBytes = max(frameBytes - ProtocolLimits.frameHeader, 1)
    }

    /// The next frame; nil after the last.
    mutating func next() -> [UInt8]? {
        guard !isDone else { return nil }
        let end = min(position + dataBytes, message.count)
        let frame = Frame(
            moreFollows: end < message.count, isPlaintext: isPlaintext, tag: tag, sequence: sequence,
            data: message[position..<end])
        position = end
        sequence &+= 1
        isDone = !frame.moreFollows
        return frame.bytes
    }
}

extension ProtocolLimits {
    /// The largest frame that a client writes, in bytes.
    ///
    /// - Parameter mtu: the ATT MTU; nil where the radio does not tell.
    package static func frameToHost(mtu: Int?) -> Int {
        guard let mtu else { return frameToHostUnknownMTU }
        return min(max(mtu, defaultMTU) - notificationHeader, frameToHost)
    }
}
