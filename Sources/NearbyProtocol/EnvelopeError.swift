// SPDX-License-Identifier: MIT

/// Why bytes are not a message, or a message not one that belongs here.
public struct EnvelopeError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of error; more may follow.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private let name: String

        private init(_ name: String) {
            self.name = name
        }

        /// Not an envelope: no JSON object, a key missing or of the wrong type, nesting too deep.
        public static let malformed = Code("malformed")
        /// Longer than the limit; judged before anything is parsed.
        public static let tooLarge = Code("too_large")
        /// Another protocol version; judged before the other fields.
        public static let unsupportedVersion = Code("unsupported_version")
        /// A type that is unknown, or does not belong in this direction. On the wire this is `malformed`.
        public static let wrongType = Code("wrong_type")

        public var description: String { name }
    }

    public var code: Code
    /// What is wrong, in English, without any of the peer's bytes.
    public var message: String
    /// The message's appId where it could be read: a reject must carry it.
    public var appId: String?
    /// The size in bytes and the limit, where `code` is `tooLarge`.
    public var size: Int?
    public var limit: Int?

    public init(code: Code, message: String, appId: String? = nil, size: Int? = nil, limit: Int? = nil) {
        self.code = code
        self.message = message
        self.appId = appId
        self.size = size
        self.limit = limit
    }

    /// What a host answers.
    public var rejectReason: RejectReason {
        switch code {
        case .tooLarge: .tooLarge
        case .unsupportedVersion: .unsupportedVersion
        default: .malformed
        }
    }

    public var description: String { "\(code): \(message)" }

    static func tooLarge(size: Int, limit: Int) -> EnvelopeError {
        EnvelopeError(
            code: .tooLarge, message: "The message has \(size) bytes, \(limit) are allowed.", size: size, limit: limit)
    }
}
