// SPDX-License-Identifier: MIT

import CSodium

/// What both sides must know where a host asks for it: 4 to 64 printable ASCII bytes.
///
/// Never shown: its description says nothing, and the bytes are wiped when the last holder is gone.
public struct Passcode: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let secret: SecretBytes

    /// - Throws: `PasscodeError`; an empty passcode is an error, never "none".
    public init(_ text: some StringProtocol) throws(PasscodeError) {
        try self.init(bytes: text.utf8)
    }

    init(bytes: some Collection<UInt8>) throws(PasscodeError) {
        guard !bytes.isEmpty else {
            throw PasscodeError(code: .empty, message: "The passcode is empty. Leave it out where none is wanted.")
        }
        guard bytes.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw PasscodeError(code: .unprintable, message: "A passcode has printable ASCII characters only.")
        }
        let allowed = ProtocolLimits.passcodeBytes
        guard allowed.contains(bytes.count) else {
            throw PasscodeError(
                code: bytes.count < allowed.lowerBound ? .tooShort : .tooLong,
                message: "A passcode has \(allowed.lowerBound) to \(allowed.upperBound) characters.")
        }
        secret = SecretBytes(copying: bytes)
    }

    /// Eight random digits.
    public static func random() -> Passcode {
        _ = Sodium.isReady
        let digits = (0..<ProtocolLimits.randomPasscodeDigits).map { _ in
            UInt8(ascii: "0") + UInt8(randombytes_uniform(10))
        }
        return Passcode(secret: SecretBytes(copying: digits))
    }

    private init(secret: SecretBytes) {
        self.secret = secret
    }

    /// The passcode in the clear, to be shown to the host's user and to nobody else.
    public func reveal() -> String {
        secret.withBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// In constant time.
    public static func == (left: Passcode, right: Passcode) -> Bool {
        left.secret.isEqual(to: right.secret)
    }

    public var description: String { "(passcode)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Why a text is no passcode. Never carries the text.
public struct PasscodeError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of error; more may follow.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private let name: String

        private init(_ name: String) {
            self.name = name
        }

        public static let empty = Code("empty")
        public static let tooShort = Code("too_short")
        public static let tooLong = Code("too_long")
        /// Something beyond printable ASCII: keyboards differ in how they write it.
        public static let unprintable = Code("unprintable")

        public var description: String { name }
    }

    public var code: Code
    /// What is wrong and what to do, in English.
    public var message: String

    public var description: String { "\(code): \(message)" }
}

extension SecretBytes {
    /// The `PRS` of an exchange: the passcode, or empty where none is needed.
    static func sharedSecret(_ passcode: Passcode?) -> SecretBytes {
        passcode?.secret ?? .empty
    }
}
