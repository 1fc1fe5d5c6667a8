// SPDX-License-Identifier: MIT

/// Points in time come in from outside; nothing in this module reads a clock.
package typealias Instant = ContinuousClock.Instant

/// A device as its radio knows it. Opaque here, and never an identity across connections: addresses rotate.
package struct PeerID: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral, CustomStringConvertible {
    package var rawValue: String

    package init(rawValue: String) {
        self.rawValue = rawValue
    }

    package init(_ rawValue: String) {
        self.rawValue = rawValue
    }

    package init(stringLiteral value: String) {
        self.rawValue = value
    }

    package var description: String { rawValue }
}

/// A request of the radio (a GATT write) that wants an answer. Chosen by whoever feeds the machine.
package struct RequestID: Hashable, Sendable, ExpressibleByIntegerLiteral {
    package var rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }

    package init(integerLiteral value: UInt64) {
        self.rawValue = value
    }
}

/// One join request that a host has accepted for decision. Counts up from 1 in each machine.
package struct JoinID: Hashable, Sendable, ExpressibleByIntegerLiteral {
    package var rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }

    package init(integerLiteral value: UInt64) {
        self.rawValue = value
    }
}

/// One attempt of a client to exchange with a device. Counts up from 1 in each machine.
package struct AttemptID: Hashable, Sendable, ExpressibleByIntegerLiteral {
    package var rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }

    package init(integerLiteral value: UInt64) {
        self.rawValue = value
    }
}

/// An error code of the Attribute Protocol (Core Specification, Vol 3, Part F, 3.4.1.1).
package struct ATTErrorCode: Hashable, Sendable, RawRepresentable, ExpressibleByIntegerLiteral {
    package var rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package init(integerLiteral value: UInt8) {
        self.rawValue = value
    }

    package static let invalidOffset: ATTErrorCode = 0x07
    package static let unlikelyError: ATTErrorCode = 0x0E
    package static let insufficientResources: ATTErrorCode = 0x11
    /// The protocol's own: no envelope that could answer fits the peer's MTU.
    package static let answerDoesNotFit: ATTErrorCode = 0x80
    /// The protocol's own (extended): another device uses the frame's tag. Read hello again.
    package static let tagInUse: ATTErrorCode = 0x81
    /// The protocol's own (extended): this is no frame, or not the one that was to come next.
    package static let frameRefused: ATTErrorCode = 0x82
}
