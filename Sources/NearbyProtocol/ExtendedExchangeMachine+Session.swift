// SPDX-License-Identifier: MIT

/// What a client keeps while it builds on one hello. Never outlives it: a fresh share for every hello.
struct ExtendedClientSession: Sendable {
    let hello: Hello
    let tag: FrameTag
    var channel: SealedChannel
    var outgoing: FrameWriter
    var assembly: FrameAssembly
    /// When the answer's first frame came.
    var answerBegan: Instant?
}

extension ExtendedExchangeMachine {
    // MARK: Instances

    /// Does what the next instance asks for, or ends where there is none left.
    mutating func beginInstance(at now: Instant) -> Step {
        while let instance = instances.first {
            switch configuration.profiles.judge(hasHello: instance.hasHello, hasMessage: instance.hasMessage) {
            case .basic?:
                return Step(outcome: .useBasic(instances: instances.filter(\.hasMessage).map(\.id)))
            case .readHello?:
                helloReads = 0
                return readHelloAgain(at: now) ?? .failed(.noAnswer)
            case .stop(let reason)?:
                refusal = refusal ?? reason
            case nil:
                break
            }
            instances.removeFirst()
        }
        if let refusal { return .failed(.securityRequired(refusal)) }
        return .failed(hasMetOtherApp ? .otherApp : .noService)
    }

    private mutating func nextInstance(at now: Instant) -> Step {
        if !instances.isEmpty { instances.removeFirst() }
        return beginInstance(at: now)
    }

    /// Nil where it was read as often as it may be.
    mutating func readHelloAgain(at now: Instant) -> Step? {
        guard helloReads < ProtocolLimits.helloReads, let instance = instances.first else { return nil }
        helloReads += 1
        session = nil
        doubt = nil
        enter(.readingHello, at: now)
        return Step([.readHello(attempt, instance: instance.id)])
    }

    mutating func judgeHello(_ bytes: [UInt8], at now: Instant) -> Step {
        let hello: Hello
        do throws(HelloError) {
            hello = try Hello(bytes)
        } catch {
            return .failed(.hello(error))
        }
        if let reason = configuration.profiles.judge(hello) {
            refusal = refusal ?? reason
            return nextInstance(at: now)
        }
        guard request.count <= hello.maximumEnvelope else {
            return .failed(.requestTooLarge(size: request.count, limit: hello.maximumEnvelope))
        }
        // The share is made when the MTU is known, which the first message carries.
        pendingHello = hello
        guard let instance = instances.first else { return .failed(.noService) }
        if subscribedInstance == instance.id { return writeRequest(at: now) }
        enter(.subscribing, at: now)
        return Step([.subscribe(attempt, instance: instance.id)])
    }

    // MARK: The request

    mutating func writeRequest(at now: Instant) -> Step {
        guard let hello = pendingHello else { return .failed(.noService) }
        pendingHello = nil
        if configuration.profiles.passcode != nil {
            guard exposures < exposuresAllowed else { return .failed(.passcodeExposed) }
            exposures += 1
        }
        guard let session = makeSession(hello) else { return .failed(.unusableShare) }
        self.session = session
        times.written = nil
        enter(.writing, at: now)
        return writeNextFrame() ?? .failed(.unusableShare)
    }

    private func makeSession(_ hello: Hello) -> ExtendedClientSession? {
        let secret = SecretBytes.sharedSecret(configuration.profiles.passcode)
        let largest =
            assumesSmallestNotifications
            ? ProtocolLimits.defaultMTU - ProtocolLimits.notificationHeader
            : mtu.map {
                min(
                    max($0, ProtocolLimits.defaultMTU) - ProtocolLimits.notificationHeader,
                    ProtocolLimits.attributeBytes)
            } ?? 0
        let head = OpeningMessage.associatedData(sid: hello.sid, largestNotification: largest)
        guard let generator = CPace.generator(passcode: secret, channel: CPace.channel, sid: hello.sid),
            let own = CPace.share(Sodium.scalar(entropy), generator: generator),
            let tag = FrameTag(share: own.point),
            let channel = SealedChannel(
                .client, own: own, hello: hello, associatedData: head, clientShare: own.point, tag: tag),
            let sealed = channel.sealer.seal(request)
        else { return nil }
        let opening = OpeningMessage(
            sid: hello.sid, largestNotification: largest, share: own.point, sealed: sealed.bytes)
        return ExtendedClientSession(
            hello: hello, tag: tag, channel: channel,
            outgoing: FrameWriter(opening.bytes, tag: tag, frameBytes: ProtocolLimits.frameToHost(mtu: mtu)),
            assembly: FrameAssembly(
                sealedLimit: hello.maximumEnvelope + ProtocolLimits.messageOverhead,
                plaintextLimit: ProtocolLimits.envelopeBytes))
    }

    private mutating func writeNextFrame() -> Step? {
        guard let instance = instances.first, let frame = session?.outgoing.next() else { return nil }
        isWriting = true
        return Step([.write(attempt, instance: instance.id, frame)])
    }

    /// A write has ended, one way or the other.
    mutating func wrote(_ input: ExtendedExchangeInput, at now: Instant) -> Step {
        guard isWriting else { return Step() }
        isWriting = false
        if phase == .writingReceipt {
            // The write that has ended may still be the request's last frame.
            if input == .written, let receipt = writeNextFrame() { return receipt }
            return Step(outcome: handoff)
        }
        guard phase == .writing else { return Step() }
        if case .writeRefused(let code) = input {
            if code == .tagInUse, let again = readHelloAgain(at: now) { return again }
            hold(.failed(.rejected(Rejection(attError: code), .plaintext)), at: now)
            return Step()
        }
        if let next = writeNextFrame() {
            enter(.writing, at: now)
            return next
        }
        times.written = now
        enter(.awaitingAnswer, at: now)
        return Step()
    }

    // MARK: The answer

    mutating func notified(_ bytes: [UInt8], at now: Instant) -> Step {
        guard let tag = session?.tag, let frame = try? Frame(bytes), frame.tag == tag else { return Step() }
        switch session?.assembly.take(frame, at: now) {
        case .incomplete?:
            return grew(by: frame, at: now)
        case .complete(let message, isPlaintext: true)?:
            hint(message, at: now)
            return Step()
        case .complete(let message, isPlaintext: false)?:
            // What does not open may be anybody's: wait on.
            guard let plaintext = session?.channel.opener.open(message), let hello = session?.hello else {
                return Step()
            }
            return judge(plaintext, hello, received: message.count, at: now)
        case .refused?, nil:
            return Step()
        }
    }

    /// As long as frames come, the answer is on its way.
    private mutating func grew(by frame: Frame, at now: Instant) -> Step {
        let received = session?.assembly.bytes.count ?? 0
        let began = received == frame.data.count ? now : session?.answerBegan ?? now
        session?.answerBegan = began
        guard phase == .awaitingAnswer else { return Step() }
        phaseDeadline = max(phaseDeadline, min(now + ProtocolLimits.betweenFrames, began + ProtocolLimits.message))
        return Step(frame.isPlaintext ? [] : [.progress(attempt, received: received)])
    }

    /// A reject that is not sealed: a hint.
    private mutating func hint(_ message: [UInt8], at now: Instant) {
        guard let envelope = try? Envelope.decode(message, as: .client), envelope.type == .reject else { return }
        hold(.failed(.rejected(Rejection(envelope), .plaintext)), at: now)
    }

    private mutating func judge(_ plaintext: [UInt8], _ hello: Hello, received: Int, at now: Instant) -> Step {
        let security = configuration.profiles.passcode == nil ? MessageSecurity.sealed : .authenticated
        var envelope: Envelope
        do throws(EnvelopeError) {
            envelope = try Envelope.decode(plaintext, as: .client, limit: hello.maximumEnvelope)
        } catch {
            return .failed(.malformedAnswer(error))
        }
        times.answered = now
        if envelope.type == .reject {
            let rejection = Rejection(envelope)
            guard rejection.reason == .appMismatch else { return .failed(.rejected(rejection, security)) }
            hasMetOtherApp = true
            return nextInstance(at: now)
        }
        guard envelope.appId.hasSameBytes(as: configuration.appId) else {
            return .failed(
                .malformedAnswer(EnvelopeError(code: .malformed, message: "The handoff is for another app.")))
        }
        envelope.payload = envelope.payload?.withoutReservedKeys
        let outcome = ExtendedOutcome.handoff(envelope, security)
        handoff = outcome
        guard let session, let receipt = session.channel.sealer.seal([]) else { return Step(outcome: outcome) }
        self.session?.outgoing = FrameWriter(
            receipt.bytes, tag: session.tag, frameBytes: ProtocolLimits.frameToHost(mtu: mtu))
        enter(.writingReceipt, at: now)
        var step = Step([.progress(attempt, received: received)])
        // One write at a time: the request's last one may not be acknowledged yet.
        if !isWriting, let write = writeNextFrame() { step.actions += write.actions }
        return step
    }
}
