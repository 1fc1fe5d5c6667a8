// SPDX-License-Identifier: MIT

/// Every bound of the protocol and of its state machines.
///
/// The wire's own figures stand in `shared/protocol.json` too, and a test holds the two together; the rest bound what
/// a peer can make us remember.
public enum ProtocolLimits {
    // MARK: The wire

    /// The one protocol version that exists.
    public static let protocolVersion = 1
    /// The largest envelope that a host sends, and that either side takes, in bytes.
    public static let envelopeBytes = 512
    /// The largest envelope that a client sends, in bytes. BlueZ below 5.69 refuses plain writes of 511 and 512 bytes
    /// (bluez/bluez#570), and 5.66 long ones from 509 on (seen).
    public static let clientEnvelopeBytes = 508
    /// The deepest nesting of objects and arrays that is read; the envelope itself is level 1.
    public static let jsonDepth = 32
    /// The longest attribute value of the Attribute Protocol, in bytes (Core Specification, Vol 3, Part F, 3.2.9).
    public static let attributeBytes = 512
    /// The ATT MTU before, or without, an exchange (Core Specification, Vol 3, Part G, 5.2.1).
    public static let defaultMTU = 23
    /// Bytes of ATT header in a notification: opcode and handle.
    public static let notificationHeader = 3
    /// Bytes of ATT header in a multiple-notification PDU with one value: opcode, handle and length.
    public static let multipleNotificationHeader = 5
    /// An envelope longer than this misses the usual iPhone (ATT MTU 185 takes 180 or 182 bytes): hosts warn.
    public static let comfortableEnvelopeBytes = 180

    // MARK: The host

    /// How long a notification's slot lasts when other answers wait.
    package static let slotWhenOthersWait: Duration = .seconds(1)
    /// How long a notification's slot lasts at most; after that the handoff counts as delivered.
    package static let slotAtMost: Duration = .seconds(5)
    /// Answers that wait for their slot; past it the answer is `busy`.
    package static let queuedAnswers = 16
    /// Join requests that the app is asked about at the same time; past it the answer is `busy`.
    package static let pendingAdmissions = 64
    /// How long the app may think about one join request.
    package static let admission: Duration = .seconds(10)
    /// How long after an answer a new subscription still has it sent again.
    package static let lateSubscription: Duration = .seconds(5)
    /// Part of a long write must be at least this long to be kept for its remainder, in bytes.
    package static let longWritePartBytes = 400
    /// How long a host waits for the remainder of a long write.
    package static let longWriteRemainder: Duration = .seconds(5)
    /// Centrals that a host remembers at the same time.
    package static let hostPeers = 256

    // MARK: The client

    /// How long a client looks for a handoff where its app says nothing else.
    package static let clientDeadline: Duration = .seconds(30)
    /// How long one attempt to connect may take.
    package static let connect: Duration = .seconds(10)
    /// How long discovery of services, a subscription or a write may take, each.
    package static let attStep: Duration = .seconds(10)
    /// How long a client waits for the answer to its request: the host's admission limit, and the queue's.
    package static let answer: Duration = .seconds(20)
    /// How long a doubtful answer (another app's reject, an ATT error) is held in case a better one arrives.
    package static let doubtfulAnswer: Duration = .seconds(1)
    /// How long a client waits for the rest of an answer that is split over notifications.
    package static let splitAnswer: Duration = .seconds(5)
    /// Attempts to exchange with one device before it is left out.
    package static let attemptsPerDevice = 3
    /// The pause after a device's first failed attempt; it doubles with each.
    package static let firstRetryPause: Duration = .milliseconds(500)
    /// Devices that a client remembers in one scan.
    package static let devicesSeen = 256
    /// Service instances of one device that a client tries.
    package static let serviceInstances = 8
    /// Readings whose median the RSSI gate judges.
    package static let rssiReadings = 5
    /// How old a reading may be.
    package static let rssiAge: Duration = .seconds(3)
    /// By how many dB a near device's signal may fall below the threshold before it counts as far again.
    package static let rssiHysteresis = 4
}
