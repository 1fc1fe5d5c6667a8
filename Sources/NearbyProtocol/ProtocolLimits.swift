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
    public static let jsonDepth = JSONReader.maximumDepth
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

    // MARK: The extended profile's wire

    /// The largest envelope that the extended profile carries, in bytes; a host may announce less.
    public static let extendedEnvelopeBytes = 65_536
    /// The smallest limit that a host may announce, in bytes: every reject fits it.
    public static let extendedEnvelopeAtLeast = 512
    /// Length of a hello of version 1, in bytes. Later versions may append.
    package static let helloBytes = 54
    /// Header of a frame: flags, tag, sequence number.
    package static let frameHeader = 4
    /// The largest frame towards the host, in bytes; bluetoothd splits what is longer (see the docs on long writes).
    package static let frameToHost = 509
    /// A frame towards the host where the radio does not tell the client its MTU (BlueZ before 5.62), in bytes.
    package static let frameToHostUnknownMTU = 180
    /// The smallest frame towards the client, in bytes: what `NotificationBudget` leaves at ATT MTU 23.
    package static let frameToClientAtLeast = 18
    /// What a message may have beyond its envelope, in bytes: `sid`, size, share, authentication tag, and room.
    package static let messageOverhead = 128
    /// The shortest and the longest passcode, in bytes.
    public static let passcodeBytes = 4...64
    /// Digits of a passcode that is made up.
    package static let randomPasscodeDigits = 8

    // MARK: The extended profile's host

    /// Unused hellos of one device.
    package static let hellosPerDevice = 4
    /// Unused hellos in all.
    package static let hellos = 256
    /// How long a hello can be built on.
    package static let hello: Duration = .seconds(30)
    /// Half messages of one device.
    package static let assembliesPerDevice = 2
    /// Half messages in all.
    package static let assemblies = 32
    /// How long a half message waits for its next frame.
    package static let betweenFrames: Duration = .seconds(5)
    /// How long a message may take from its first frame to its last, either way.
    package static let message: Duration = .seconds(60)
    /// Failed attempts that a host with a passcode allows at once.
    package static let failedAttempts = 20
    /// How long until one more failed attempt is allowed.
    package static let failedAttemptRefill: Duration = .seconds(30)
    /// Devices whose failures are remembered.
    package static let devicesWithFailures = 256
    /// Attempts of one device whose keys are held at the same time.
    package static let attemptsPerPeer = 4
    /// Attempts in all whose keys are held at the same time.
    package static let attempts = 64
    /// Messages that a host sends at the same time.
    package static let messagesAtOnce = 4
    /// Plaintext rejects that wait to be sent; past it the write is refused.
    package static let plaintextRejects = 16
    /// How long a host waits for the receipt after the last frame was handed over.
    package static let receipt: Duration = .seconds(60)
    /// Answers kept for a request that comes again.
    package static let rememberedAnswers = 64
    /// Their bytes in all.
    package static let rememberedAnswerBytes = 4 * 1_024 * 1_024
    /// How long an answer is kept.
    package static let rememberedAnswer: Duration = .seconds(60)

    // MARK: The extended profile's client

    /// Hellos that a client reads of one instance in one attempt, where the host says `stale` or the tag is taken.
    package static let helloReads = 3
    /// How long a client waits for the receipt's write; the handoff counts all the same.
    package static let receiptWrite: Duration = .seconds(2)
    /// How long a client that has met a host with a passcode, and has none itself, looks for another before it says so.
    package static let passcodeNeeded: Duration = .seconds(2)
    /// Messages 0 that a client with a passcode sends in one search: each lets a false host try one guess.
    package static let passcodeExposures = 5
}
