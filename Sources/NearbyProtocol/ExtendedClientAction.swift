// SPDX-License-Identifier: MIT

/// One instance of the service on a device, as the radio found it.
package struct ServiceInstance: Hashable, Sendable {
    /// As the radio numbers it.
    package var id: Int
    /// The message characteristic is there.
    package var hasMessage: Bool
    /// Hello and channel are both there.
    package var hasHello: Bool

    package init(id: Int, hasMessage: Bool, hasHello: Bool) {
        self.id = id
        self.hasMessage = hasMessage
        self.hasHello = hasHello
    }
}

/// What a radio tells of one attempt.
package enum ExtendedExchangeInput: Equatable, Sendable {
    case connected
    case connectFailed(LinkFailure)
    /// The instances of the service, in the device's order; empty: none.
    case discovered([ServiceInstance])
    case discoveryFailed(LinkFailure)
    case helloRead([UInt8])
    case helloRefused(ATTErrorCode)
    case helloFailed(LinkFailure)
    /// - Parameter mtu: the ATT MTU now; nil where the radio does not tell (BlueZ before 5.62).
    case subscribed(mtu: Int?)
    case subscribeFailed(LinkFailure)
    case written
    case writeRefused(ATTErrorCode)
    case writeFailed(LinkFailure)
    /// - Parameter instance: nil where the radio cannot tell.
    case notified([UInt8], instance: Int? = nil)
    case disconnected(LinkFailure)
}

/// What whoever drives an `ExtendedExchangeMachine` must do, in the order given.
package enum ExtendedClientAction: Equatable, Sendable {
    /// Find the service's instances.
    case discover(AttemptID)
    /// Read an instance's hello characteristic, all of it.
    case readHello(AttemptID, instance: Int)
    /// Subscribe to an instance's channel characteristic.
    case subscribe(AttemptID, instance: Int)
    /// Write a frame to it, with response. The next comes when this is `written`.
    case write(AttemptID, instance: Int, [UInt8])
    /// So many bytes of the answer have come; how many there will be is not known.
    case progress(AttemptID, received: Int)
}

/// How far a message can be trusted.
public enum MessageSecurity: Hashable, Sendable {
    /// Plain text: anybody in range may have written it.
    case plaintext
    /// Sealed, unauthenticated: hidden from listeners and from the host's other clients, but not from somebody who sat
    /// between us from the start.
    case sealed
    /// Sealed, and the other side knows the passcode.
    case authenticated
}

/// How one attempt ended.
package enum ExtendedOutcome: Equatable, Sendable {
    /// The payload is without reserved keys.
    case handoff(Envelope, MessageSecurity)
    /// Go on with `ExchangeMachine` over the same link, with these instances.
    case useBasic(instances: [Int])
    case failed(ExtendedExchangeFailure)
}

/// Why one exchange came to nothing.
package enum ExtendedExchangeFailure: Equatable, Sendable {
    case link(LinkFailure, during: ExchangePhase)
    /// Every instance of the service serves another app.
    case otherApp
    /// The device advertises the service but does not have it.
    case noService
    /// No answer in time. With the next attempt `assumesSmallestNotifications` may help.
    case noAnswer
    /// The hello is none that we can read.
    case hello(HelloError)
    /// The hello could not be read.
    case helloRefused(ATTErrorCode)
    /// The host's share is no group element.
    case unusableShare
    case securityRequired(SecurityRequired)
    /// The request does not fit the host's limit. In bytes.
    case requestTooLarge(size: Int, limit: Int)
    /// What was sealed is no message that belongs here.
    case malformedAnswer(EnvelopeError)
    /// The host said no; without a seal that is only a hint, and somebody else may have said it.
    case rejected(Rejection, MessageSecurity)
    /// The passcode has been tried on as many hosts as it may be in one search: each false one could test a guess.
    case passcodeExposed
}
