// SPDX-License-Identifier: MIT

/// How a device disguises what it sends and wants to be sent.
///
/// A codec sees packets: the value of one write, or of one notification. It keeps no state, so that a lost packet
/// harms no other, and one codec can be tried after another on the same link.
public protocol PacketCodec: Sendable {
    /// A name for logs.
    var name: String { get }
    /// Bytes that `encode` adds to a packet at most, 0 to 256; packets are made that much smaller.
    var overhead: Int { get }

    func encode(_ packet: [UInt8]) -> [UInt8]

    /// `nil`: not in this code. Such a packet is reported as `raw` and goes no further.
    func decode(_ packet: [UInt8]) -> [UInt8]?
}

extension PacketCodec {
    public var overhead: Int { 0 }
}

/// Nothing is disguised.
public struct PlainCodec: PacketCodec, Hashable {
    public init() {}

    public var name: String { "plain" }

    public func encode(_ packet: [UInt8]) -> [UInt8] { packet }

    public func decode(_ packet: [UInt8]) -> [UInt8]? { packet }
}

/// Exclusive or with a key that repeats, and starts anew with each packet. It hides nothing from anybody who looks.
public struct XORCodec: PacketCodec, Hashable {
    private let key: [UInt8]

    /// - Parameter key: 1 to 256 bytes; an empty one changes nothing, and of a longer one the first 256 count.
    public init(key: some Sequence<UInt8>) { self.key = Array(key.prefix(Limits.keyBytes)) }

    public var name: String { "xor" }

    public func encode(_ packet: [UInt8]) -> [UInt8] {
        guard !key.isEmpty else { return packet }
        return packet.enumerated().map { index, byte in byte ^ key[index % key.count] }
    }

    public func decode(_ packet: [UInt8]) -> [UInt8]? { encode(packet) }
}

extension PacketCodec where Self == PlainCodec {
    public static var plain: PlainCodec { PlainCodec() }
}

extension PacketCodec where Self == XORCodec {
    public static func xor(key: some Sequence<UInt8>) -> XORCodec { XORCodec(key: key) }

    public static func xor(key: UInt8) -> XORCodec { XORCodec(key: CollectionOfOne(key)) }
}
