// SPDX-License-Identifier: MIT

import Synchronization

/// Whom a message goes to: the first byte of what its seal covers.
package enum MessageDirection: UInt8, Sendable {
    case toHost = 0x01
    case toClient = 0x02
}

/// Seals the messages of one direction, one after the other.
///
/// The number of a message cannot be named from outside: each call takes the next, so no key and number ever seal two
/// plaintexts. A class, so that copies of a state machine share the count. What goes out again is the same
/// `SealedMessage`.
final class MessageSealer: Sendable {
    private let key: SecretBytes
    private let associatedData: [UInt8]
    private let next = Atomic<UInt64>(0)

    fileprivate init(key: SecretBytes, associatedData: [UInt8]) {
        self.key = key
        self.associatedData = associatedData
    }

    func seal(_ plaintext: [UInt8]) -> SealedMessage? {
        let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
        return Sodium.seal(plaintext, key: key, nonce: MessageNumber.nonce(number), associatedData: associatedData)
            .map { SealedMessage(number: number, bytes: $0) }
    }
}

/// A message as it goes over the air, however often.
struct SealedMessage: Equatable, Sendable {
    let number: UInt64
    let bytes: [UInt8]

    fileprivate init(number: UInt64, bytes: [UInt8]) {
        self.number = number
        self.bytes = bytes
    }
}

/// Opens the messages of one direction in their order; a message that was opened does not open again.
struct MessageOpener: Sendable {
    private let key: SecretBytes
    private let associatedData: [UInt8]
    private(set) var next: UInt64 = 0

    fileprivate init(key: SecretBytes, associatedData: [UInt8]) {
        self.key = key
        self.associatedData = associatedData
    }

    /// Nil where it is not the next message, or not of this direction, tag and key, or altered.
    mutating func open(_ sealed: [UInt8]) -> [UInt8]? {
        let plaintext = Sodium.open(
            sealed, key: key, nonce: MessageNumber.nonce(next), associatedData: associatedData)
        if plaintext != nil { next += 1 }
        return plaintext
    }
}

enum MessageNumber {
    /// The number as 12 bytes, big-endian.
    static func nonce(_ number: UInt64) -> [UInt8] {
        [0, 0, 0, 0] + withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}

/// What the intermediate key becomes: a key for each direction.
struct SealedChannel: Sendable {
    enum Role: Sendable {
        case host
        case client
    }

    static let keyContext: StaticString = "NDKv1key"

    let sealer: MessageSealer
    var opener: MessageOpener

    init?(_ role: Role, intermediateKey: SecretBytes, tag: FrameTag) {
        guard let toHost = Sodium.subkey(1, context: Self.keyContext, of: intermediateKey),
            let toClient = Sodium.subkey(2, context: Self.keyContext, of: intermediateKey)
        else { return nil }
        self.init(role, toHost: toHost, toClient: toClient, tag: tag)
    }

    init(_ role: Role, toHost: SecretBytes, toClient: SecretBytes, tag: FrameTag) {
        let down = [MessageDirection.toHost.rawValue] + tag.bytes
        let up = [MessageDirection.toClient.rawValue] + tag.bytes
        switch role {
        case .client:
            sealer = MessageSealer(key: toHost, associatedData: down)
            opener = MessageOpener(key: toClient, associatedData: up)
        case .host:
            sealer = MessageSealer(key: toClient, associatedData: up)
            opener = MessageOpener(key: toHost, associatedData: down)
        }
    }
}
