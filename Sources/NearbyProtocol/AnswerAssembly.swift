// SPDX-License-Identifier: MIT

/// What a client makes of the bytes of an answer.
package enum AnswerVerdict: Equatable, Sendable {
    /// A handoff for our app.
    case take(Envelope)
    /// A reject for our app.
    case reject(Envelope)
    /// A reject with another appId: for another client, or of a host that echoes its own. Held in case a better
    /// answer comes.
    case hold(Envelope)
    /// A handoff for another app: somebody else's.
    case ignore
    /// The start of a message.
    case incomplete
    case malformed(EnvelopeError)

    package static func judge(_ bytes: [UInt8], appId: String) -> AnswerVerdict {
        do throws(EnvelopeError) {
            let envelope = try Envelope.decode(bytes, as: .client)
            let isOurs = envelope.appId.hasSameBytes(as: appId)
            if envelope.type == .handoff { return isOurs ? .take(envelope) : .ignore }
            return isOurs ? .reject(envelope) : .hold(envelope)
        } catch {
            if bytes.count <= ProtocolLimits.envelopeBytes, Envelope.isPrefix(bytes) { return .incomplete }
            return .malformed(error)
        }
    }
}

/// Puts an answer together that a host split over several notifications without a header.
struct AnswerAssembly: Sendable, Equatable {
    private let appId: String
    private(set) var bytes: [UInt8] = []
    private(set) var deadline: Instant?

    init(appId: String) {
        self.appId = appId
    }

    /// Takes one notification.
    mutating func append(_ notification: [UInt8], at now: Instant) -> AnswerVerdict {
        var verdict = AnswerVerdict.judge(bytes + notification, appId: appId)
        if !bytes.isEmpty, case .malformed = verdict {
            // Not the rest of what came before: perhaps a message of its own, sent again or to somebody else.
            let alone = AnswerVerdict.judge(notification, appId: appId)
            reset()
            if case .malformed = alone {} else { verdict = alone }
        }
        if verdict == .incomplete {
            bytes += notification
            if deadline == nil { deadline = now + ProtocolLimits.splitAnswer }
        } else {
            reset()
        }
        return verdict
    }

    mutating func reset() {
        bytes = []
        deadline = nil
    }

    /// Whether the part so far names our app: then what is missing was meant for us.
    var namesOurApp: Bool {
        let wanted = Array("\"appId\":".utf8) + JSONValue.string(appId).encoded()
        guard bytes.count >= wanted.count else { return false }
        return (0...(bytes.count - wanted.count)).contains { bytes[$0..<($0 + wanted.count)].elementsEqual(wanted) }
    }
}
