// SPDX-License-Identifier: MIT

@testable import NearbyProtocol

/// Two exchanges under one passcode, each stopped where the fuzzer takes over: one at a host, one at a client.
struct SealedExchange: Sendable {
    static let made = SealedExchange()

    // At the host.

    /// Hello has been read by "a".
    let greeted: ExtendedHostMachine
    /// The handoff went out, and the receipt is awaited.
    let served: ExtendedHostMachine
    let hello: Hello
    let opening: OpeningMessage
    let receipt: [UInt8]
    let tag: FrameTag
    private let share: CPace.Share

    // At the client.

    /// Message 0 is written, and the answer is awaited.
    let client: ExtendedExchangeMachine
    let clientTag: FrameTag
    /// The answer of the host that it talks to.
    let answer: [UInt8]
    private let clientHello: Hello
    private let hostShare: CPace.Share
    private let clientOpening: OpeningMessage

    private init?() {
        guard let passcode = try? Passcode("482913"), let greeted = Self.host(passcode, SealedTarget.entropy),
            let own = Self.share(greeted.hello, passcode), let tag = FrameTag(share: own.point)
        else { return nil }
        (self.greeted, hello, share, self.tag) = (greeted.host, greeted.hello, own, tag)
        let head = OpeningMessage.associatedData(sid: hello.sid, largestNotification: 0)
        let request = Envelope.joinRequest(appId: EnvelopeTarget.appId).encoded()
        guard
            let channel = SealedChannel(
                .client, own: own, hello: hello, associatedData: head, clientShare: own.point, tag: tag),
            let sealed = channel.sealer.seal(request), let receipt = channel.sealer.seal([])
        else { return nil }
        opening = OpeningMessage(sid: hello.sid, largestNotification: 0, share: own.point, sealed: sealed.bytes)
        self.receipt = receipt.bytes
        guard let served = Self.serve(greeted.host, opening, tag) else { return nil }
        self.served = served.host

        guard let client = Self.client(passcode), let other = Self.host(passcode, SealedTarget.entropy) else {
            return nil
        }
        var machine = client
        _ = machine.handle(.helloRead(other.hello.bytes), at: SealedTarget.now)
        guard case .write(_, _, let frame)? = machine.handle(.subscribed(mtu: 517), at: SealedTarget.now).actions.first,
            let opening = OpeningMessage(Array(frame.dropFirst(4))), let tag = FrameTag(share: opening.share),
            machine.handle(.written, at: SealedTarget.now).actions.isEmpty,
            let answered = Self.serve(other.host, opening, tag),
            var book = Optional(other.host.book),
            let snapshot = book.take(other.hello.sid, by: "a", at: SealedTarget.now)
        else { return nil }
        (self.client, clientTag, clientHello, clientOpening) = (machine, tag, other.hello, opening)
        answer = answered.message
        hostShare = CPace.Share(scalar: snapshot.scalar, point: snapshot.hello.share)
    }

    /// A channel of the client's at the host, with nothing sealed yet.
    func channel() -> SealedChannel? {
        SealedChannel(
            .client, own: share, hello: hello, associatedData: opening.associatedData, clientShare: share.point,
            tag: tag)
    }

    /// A channel of the client's host, with nothing sealed yet.
    func hostChannel() -> SealedChannel? {
        SealedChannel(
            .host, own: hostShare, hello: clientHello, associatedData: clientOpening.associatedData,
            clientShare: clientOpening.share, tag: clientTag)
    }

    private static func share(_ hello: Hello, _ passcode: Passcode) -> CPace.Share? {
        CPace.generator(passcode: .sharedSecret(passcode), channel: CPace.channel, sid: hello.sid)
            .flatMap { CPace.share(Sodium.scalar(Entropy { $0.initialize(repeating: 7, count: $1) }), generator: $0) }
    }

    private static func host(_ passcode: Passcode, _ entropy: Entropy) -> (host: ExtendedHostMachine, hello: Hello)? {
        guard let profiles = try? HostProfiles(passcode: passcode),
            var host = try? ExtendedHostMachine(
                ExtendedHostConfiguration(
                    appId: EnvelopeTarget.appId, sessionId: "s", payload: SealedTarget.payload, profiles: profiles,
                    maximumEnvelope: SealedTarget.limit),
                entropy: entropy)
        else { return nil }
        for peer: PeerID in ["a", "b"] {
            _ = host.centralConnected(peer, at: SealedTarget.now)
            _ = host.subscribed(peer, mtu: 185, at: SealedTarget.now)
        }
        for case .answer(_, let bytes) in host.readHello(1, from: "a", offset: 0, mtu: 185, at: SealedTarget.now) {
            return (try? Hello(bytes)).map { (host, $0) }
        }
        return nil
    }

    private static func client(_ passcode: Passcode) -> ExtendedExchangeMachine? {
        guard let profiles = try? ClientProfiles(passcode: passcode) else { return nil }
        let configuration = ExtendedClientConfiguration(
            appId: EnvelopeTarget.appId, profiles: profiles, requestID: JoinRequestID(SealedTarget.entropy))
        var client = try? ExtendedExchangeMachine(
            1, with: "h", configuration, entropy: SealedTarget.entropy, at: SealedTarget.now)
        _ = client?.handle(.connected, at: SealedTarget.now)
        _ = client?.handle(
            .discovered([ServiceInstance(id: 1, hasMessage: true, hasHello: true)]), at: SealedTarget.now)
        return client
    }

    /// - Returns: the host that awaits the receipt, and its sealed answer.
    private static func serve(
        _ host: ExtendedHostMachine, _ opening: OpeningMessage, _ tag: FrameTag
    ) -> (host: ExtendedHostMachine, message: [UInt8])? {
        var host = host
        var actions = SealedTarget.deliver(opening.bytes, tag, to: &host, frameBytes: 182)
        for case .decide(let join) in actions {
            actions += host.admissionDecided(join.id, .handoff(), at: SealedTarget.now)
        }
        let message = SealedTarget.pump(actions, &host).flatMap { $0.dropFirst(4) }
        return message.isEmpty ? nil : (host, message)
    }
}
