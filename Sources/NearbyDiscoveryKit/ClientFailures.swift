// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

extension LinkFailure {
    init(_ error: BluetoothError) {
        let kind: Kind =
            switch error.code {
            case .timedOut: .timedOut
            case .disconnected, .notConnected: .disconnected
            case .peerNotFound: .gone
            case .attributeNotFound: .notFound
            default: .other
            }
        self.init(kind, error.message, detail: error.cause)
    }
}

extension RadioUnavailability {
    init(_ error: BluetoothError) {
        let kind: Kind =
            switch error.code {
            case .adapterNotFound: .absent
            case .poweredOff: .poweredOff
            case .unauthorized: .unauthorized
            case .notSupported: .unsupported
            case .resetting: .resetting
            default: .other
            }
        self.init(kind, error.message)
    }
}

extension DisconnectReason {
    var sentence: String {
        switch self {
        case .local: "the link was taken down by this side"
        case .remote: "the host took the link down"
        case .timeout: "nothing was heard of the host any more"
        case .adapterLost: "the adapter went away"
        case .unknown: "the link went down"
        }
    }
}

extension ExchangePhase {
    /// Completes "while …".
    var activity: String {
        switch self {
        case .connecting: "connecting"
        case .discovering: "looking for its services"
        case .readingHello: "reading its hello"
        case .subscribing: "subscribing"
        case .writing: "sending the join request"
        case .awaitingAnswer: "waiting for the answer"
        case .writingReceipt: "sending the receipt"
        }
    }
}

extension ExchangeFailure {
    /// Why, for a person; without a full stop.
    package var sentence: String {
        switch self {
        case .link(let failure, let phase) where failure.kind == .timedOut:
            "it did not answer while \(phase.activity); it may have left"
        case .link(let failure, let phase):
            "\(failure.message.isEmpty ? "the link failed" : failure.message) while \(phase.activity)"
        case .otherApp: "it serves another app"
        case .noService: "it advertises the service, and does not have it"
        case .noAnswer: "it did not answer in time"
        case .truncatedAnswer(let bytes): "its answer stopped after \(bytes) bytes"
        case .malformedAnswer(let error): "its answer is no message: \(error.message)"
        case .rejected(let rejection) where rejection.isUnanswered: "its program did not answer"
        case .rejected(let rejection): "it said no: \(rejection.reason?.rawValue ?? "an ATT error")"
        case .radioLost: "the adapter went away"
        case .hello(let error): "its hello is none that this version reads: \(error)"
        case .helloRefused(let code): "it refused its hello: \(ATTError(rawValue: code.rawValue))"
        case .unusableShare: "its hello has no usable key"
        case .securityRequired(let reason): reason.sentence
        case .requestTooLarge(let size, let limit): "the join request is \(size) bytes, and it takes \(limit)"
        case .passcodeExposed:
            "the passcode was put to \(ProtocolLimits.passcodeExposures) hosts, and none of them opened the exchange"
        }
    }
}

extension SecurityRequired {
    /// For a person; without a full stop.
    var sentence: String {
        switch self {
        case .passcodeNeeded: "the host wants a passcode"
        case .hostAsksForNoPasscode: "a passcode was given, and the host asks for none"
        case .hostHasNoExtended: "the host has only the basic profile, which is plain text"
        case .hostHasNoBasic: "the host has only the extended profile"
        }
    }

    var advice: String {
        switch self {
        case .passcodeNeeded: "Ask for the passcode that the host shows, and join again with it."
        case .hostAsksForNoPasscode: "Is it the right host? To join it all the same, leave the passcode out."
        case .hostHasNoExtended: "Is it the right host? To join it in plain text, leave passcode and profile out."
        case .hostHasNoBasic: "Leave the profile out."
        }
    }
}

extension NearbyError.Rejection {
    init(_ rejection: NearbyProtocol.Rejection) {
        self.init(
            reason: rejection.reason,
            message: rejection.message.isEmpty ? nil : rejection.message,
            attError: rejection.attError?.rawValue,
            security: rejection.security,
            retryAfter: rejection.retryAfter
        )
    }
}

extension NearbyError {
    /// A search's end in the framework's words.
    init(_ failure: ClientFailure, app: String, unavailability: BluetoothError?) {
        let counts = failure.counts
        switch failure.code {
        case .nothingFound where counts.seen > 0:
            self.init(
                .nothingFound,
                "\(Self.count(counts.seen, "host")) heard, but had gone out of reach",
                advice: "Stay near the host, and try again.",
                encounters: counts
            )
        case .nothingFound:
            self.init(
                .nothingFound,
                "no host of \(app) was heard in time",
                advice: "Is the host running, near, and its screen on? `nearby scan` lists what can be heard.",
                encounters: counts
            )
        case .tooFar:
            self.init(
                .nothingFound,
                "\(Self.count(counts.tooFar, "host")) heard, none near enough",
                advice: "Come closer, or ask for a lower minimum RSSI.",
                encounters: counts
            )
        case .otherApp:
            self.init(
                .nothingFound,
                "\(Self.count(counts.otherApp, "host")) met, and none serves \(app)",
                advice: "Check that both sides use the same appId, byte for byte.",
                encounters: counts
            )
        case .nothingChosen:
            self.init(.nothingFound, "none of the hosts was chosen in time", encounters: counts)
        case .rejected(let rejection):
            self.init(rejection, encounters: counts)
        case .unauthorized(let rejection):
            self.init(
                .wrongPasscode,
                "the host did not accept the passcode",
                advice: "Check it against the host's screen. Anybody in range can say so: if it is right, try again.",
                rejection: Rejection(rejection),
                encounters: counts
            )
        case .securityRequired(let reason):
            self.init(.securityRequired, reason.sentence, advice: reason.advice, encounters: counts)
            isPasscodeNeeded = reason == .passcodeNeeded
        case .exchangeFailed(.requestTooLarge(let size, let limit)):
            self.init(
                .payloadTooLarge,
                "the join request is \(size) bytes, \(size - limit) over the \(limit) that the host takes",
                advice: "Shorten the payload that goes along with the request.",
                encounters: counts
            )
        case .truncatedAnswer(let bytes):
            self.init(
                .linkFailed,
                "the host's answer stopped after \(bytes) bytes",
                advice: "The host's payload is too long for this link; shorten it there.",
                encounters: counts
            )
        case .exchangeFailed(.link(let failure, let phase)) where failure.kind == .timedOut:
            self.init(
                .linkFailed,
                "the host did not answer while \(phase.activity); it may have left",
                advice: "Is it still there, and its screen on? Come closer, and try again.",
                encounters: counts,
                detail: failure.detail
            )
        case .exchangeFailed(let reason):
            self.init(
                .linkFailed,
                "the exchange with the host failed: \(reason.sentence)",
                advice: "Try again, nearer to the host; `bluetoothctl` shows what the adapter sees.",
                encounters: counts,
                detail: reason.detail
            )
        case .timedOut(let phase):
            self.init(
                .linkFailed,
                "the time was up while \(phase.activity)",
                advice: "Allow more time, or come closer.",
                encounters: counts
            )
        case .radioUnavailable(let reason):
            self.init(unavailability ?? BluetoothError(.serviceUnavailable, reason.message))
            encounters = counts
        case .cancelled:
            self = .cancelled
            encounters = counts
        }
    }

    private init(_ rejection: NearbyProtocol.Rejection, encounters: Encounters) {
        if rejection.isUnanswered {
            self.init(
                .linkFailed,
                "the host did not answer (its program hangs or has died)",
                advice: "Try again in a moment; if it stays so, start the host again.",
                rejection: Rejection(rejection),
                encounters: encounters
            )
            return
        }
        var message = "the host said no"
        if let reason = rejection.reason { message += ": \(reason.rawValue)" }
        if let code = rejection.attError { message += ": \(ATTError(rawValue: code.rawValue))" }
        if !rejection.message.isEmpty { message += " (“\(rejection.message)”)" }
        if rejection.reason == .securityRequired {
            self.init(
                .securityRequired,
                "the host does not serve the basic profile",
                advice: "Join in the extended profile, with the host's passcode if it shows one.",
                rejection: Rejection(rejection),
                encounters: encounters
            )
            return
        }
        let advice: String? =
            switch rejection.reason {
            case .busy?, .timeout?:
                rejection.retryAfter.map { "Try again in \($0.components.seconds) seconds." }
                    ?? "Try again in a moment."
            case .tooLarge?: "The host's payload is too long for this link; shorten it there."
            default: nil
            }
        self.init(.rejected, message, advice: advice, rejection: Rejection(rejection), encounters: encounters)
    }

    private static func count(_ number: Int, _ noun: String) -> String {
        number == 1 ? "one \(noun) was" : "\(number) \(noun)s were"
    }
}

extension ExchangeFailure {
    /// The radio's own words, where it has said any.
    fileprivate var detail: String? {
        if case .link(let failure, _) = self { failure.detail } else { nil }
    }
}

extension NearbyProtocol.Rejection {
    /// Nobody has said no: a Bluetooth service answers the write with unlikely error (0x0E) for a program that does not.
    fileprivate var isUnanswered: Bool { reason == nil && attError?.rawValue == ATTError.unlikelyError.rawValue }

    /// When the host says to try again; what it says is bounded here, since it may be anybody's.
    var retryAfter: Duration? {
        payload?["retryAfter"]?.int.flatMap { (0...86_400).contains($0) ? .seconds($0) : nil }
    }
}

extension NearbyMessage {
    init(_ envelope: Envelope) {
        self.init(
            type: envelope.type.rawValue,
            protocolVersion: envelope.protocolVersion,
            appId: envelope.appId,
            sessionId: envelope.sessionId,
            payload: envelope.payload.map { NearbyPayload($0) }
        )
    }
}
