// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

/// A client machine at a host machine, over a link that a test can meddle with.
struct ExtendedPair {
    static let both = ServiceInstance(id: 1, hasMessage: true, hasHello: true)

    var host: ExtendedHostFixture
    var client: ExtendedExchangeMachine
    var mtu: Int? = 185
    private(set) var outcome: ExtendedOutcome?
    private(set) var clientActions: [ExtendedClientAction] = []
    private(set) var hostEvents: [ExtendedHostEvent] = []
    /// What the app says; nil: nothing.
    var decision: AdmissionDecision? = .handoff()
    /// Changes what crosses the air.
    var helloOnAir: (inout [UInt8]) -> Void = { _ in }
    var frameOnAir: (inout [UInt8]) -> Bool = { _ in true }

    init(
        hostPasscode: String? = nil, passcode: String? = nil, payload: JSONObject = ExtendedHostFixture.payload,
        choice: ProfileChoice = .auto, requestID: JoinRequestID = JoinRequestID(), exposuresAllowed: Int = 5
    ) throws {
        host = try ExtendedHostFixture(passcode: hostPasscode, payload: payload)
        client = try Self.client(
            passcode: passcode, choice: choice, requestID: requestID, exposuresAllowed: exposuresAllowed, at: host.now)
        host.connect("client")
    }

    static func client(
        passcode: String? = nil, choice: ProfileChoice = .auto, requestID: JoinRequestID = JoinRequestID(),
        exposuresAllowed: Int = 5, at now: Instant
    ) throws -> ExtendedExchangeMachine {
        try ExtendedExchangeMachine(
            1, with: "host",
            ExtendedClientConfiguration(
                appId: ExtendedHostFixture.appId,
                profiles: ClientProfiles(choice, passcode: passcode.map { try Passcode($0) }), requestID: requestID),
            exposuresAllowed: exposuresAllowed, at: now)
    }

    mutating func run(_ instances: [ServiceInstance] = [both]) {
        tell(.connected)
        tell(.discovered(instances))
    }

    mutating func tell(_ input: ExtendedExchangeInput) {
        follow(client.handle(input, at: host.now))
    }

    mutating func fire(after duration: Duration) {
        host.now += duration
        follow(client.timerFired(at: host.now))
    }

    private mutating func follow(_ step: ExtendedExchangeMachine.Step) {
        outcome = outcome ?? step.outcome
        clientActions += step.actions
        for action in step.actions {
            switch action {
            case .discover, .progress: break
            case .readHello:
                var bytes = host.hello("client") ?? []
                helloOnAir(&bytes)
                tell(.helloRead(bytes))
            case .subscribe: tell(.subscribed(mtu: mtu))
            case .write(_, _, let frame):
                let actions = host.write(frame, from: "client", mtu: mtu)
                if let code = actions.refusals.first {
                    tell(.writeRefused(code))
                } else {
                    tell(.written)
                }
                deliver(actions)
            }
        }
    }

    mutating func deliver(_ actions: [ExtendedHostAction]) {
        let (frames, all) = host.pump(actions)
        hostEvents += all.events
        for (_, bytes) in frames {
            var bytes = bytes
            if frameOnAir(&bytes) { tell(.notified(bytes, instance: 1)) }
        }
        for join in all.joins where decision != nil {
            if let decision { deliver(host.decide(join, decision)) }
        }
    }
}

@Suite struct ExtendedClientTests {
    @Test(arguments: [nil, "48291365"], [23, 185, 517, nil])
    func `a client joins and says that it has`(_ passcode: String?, _ mtu: Int?) throws {
        var pair = try ExtendedPair(hostPasscode: passcode, passcode: passcode)
        pair.mtu = mtu
        pair.run()
        #expect(pair.outcome == .handoff(ExtendedHostFixture.handoff, passcode == nil ? .sealed : .authenticated))
        let join = JoinID(1 << 63 + 1)
        #expect(pair.hostEvents.contains(.handedOff(join, "client")))
        #expect(pair.hostEvents.last == .delivered(join, "client") && pair.host.machine.attempts.count == 0)
        #expect(pair.client.exposures == (passcode == nil ? 0 : 1))
    }

    @Test func `a long handoff tells what has come`() throws {
        var pair = try ExtendedPair(payload: ["x": .string(String(repeating: "x", count: 20_000))])
        pair.run()
        let received = pair.clientActions.compactMap { if case .progress(_, let bytes) = $0 { bytes } else { nil } }
        #expect(received.count > 100 && received == received.sorted() && (received.last ?? 0) > 20_000)
    }

    // MARK: No way round a passcode

    @Test func `a passcode stops at a host without hello, or whose hello asks for none`() throws {
        var pair = try ExtendedPair(passcode: "1234")
        pair.run([ServiceInstance(id: 1, hasMessage: true, hasHello: false)])
        #expect(pair.outcome == .failed(.securityRequired(.hostHasNoExtended)))
        pair = try ExtendedPair(passcode: "1234")
        pair.run()
        #expect(pair.outcome == .failed(.securityRequired(.hostAsksForNoPasscode)))
        #expect(!pair.clientActions.contains { if case .write = $0 { true } else { false } })
    }

    @Test func `a client without a passcode stops where one is wanted`() throws {
        var pair = try ExtendedPair(hostPasscode: "1234")
        pair.run()
        #expect(pair.outcome == .failed(.securityRequired(.passcodeNeeded)))
        #expect(pair.clientActions == [.discover(1), .readHello(1, instance: 1)])
    }

    @Test func `the passcode bit taken away or set in flight gets nobody in`() throws {
        var pair = try ExtendedPair(hostPasscode: "1234", passcode: "1234")
        pair.helloOnAir = { $0[1] ^= 1 }
        pair.run()
        #expect(pair.outcome == .failed(.securityRequired(.hostAsksForNoPasscode)))
        pair = try ExtendedPair(hostPasscode: "1234")
        pair.helloOnAir = { $0[1] ^= 1 }
        pair.run()
        pair.fire(after: .seconds(1))
        #expect(pair.outcome.reason == .unauthorized)
        pair = try ExtendedPair(passcode: "1234")
        pair.helloOnAir = { $0[1] ^= 1 }
        pair.run()
        pair.fire(after: .seconds(1))
        #expect(pair.outcome.reason == .unauthorized)
    }

    @Test func `a wrong passcode is a hint for a second, then the end`() throws {
        var pair = try ExtendedPair(hostPasscode: "1234", passcode: "1235")
        pair.run()
        #expect(pair.outcome == nil && pair.client.heldOutcome.reason == .unauthorized)
        pair.fire(after: .milliseconds(999))
        #expect(pair.outcome == nil)
        pair.fire(after: .milliseconds(1))
        guard case .failed(.rejected(let rejection, .plaintext))? = pair.outcome else {
            Issue.record("\(String(describing: pair.outcome))")
            return
        }
        #expect(rejection.reason == .unauthorized)
    }

    @Test func `a passcode is put to so many hosts in a search and no more`() throws {
        var pair = try ExtendedPair(hostPasscode: "1234", passcode: "1234", exposuresAllowed: 0)
        pair.run()
        #expect(pair.outcome == .failed(.passcodeExposed))
    }

    // MARK: Choice of profile

    @Test func `without hello the basic profile takes over, unless extended is wanted`() throws {
        let basic = [ServiceInstance(id: 4, hasMessage: true, hasHello: false)]
        var pair = try ExtendedPair()
        pair.run(basic)
        #expect(pair.outcome == .useBasic(instances: [4]))
        var exchange = ExchangeMachine(1, with: "host", appId: "app", request: [], at: pair.host.now)
        #expect(exchange.resume(instances: [4], at: pair.host.now).actions == [.subscribe(1, instance: 4)])
        pair = try ExtendedPair(choice: .extended)
        pair.run(basic)
        #expect(pair.outcome == .failed(.securityRequired(.hostHasNoExtended)))
        pair = try ExtendedPair(choice: .basic)
        pair.run()
        #expect(pair.outcome == .useBasic(instances: [1]))
        pair = try ExtendedPair()
        pair.run([])
        #expect(pair.outcome == .failed(.noService))
    }

    // MARK: What comes over the air

    @Test func `a hello that cannot be used ends the attempt`() throws {
        let changes: [((inout [UInt8]) -> Void, ExtendedExchangeFailure)] = [
            ({ $0 = [] }, .hello(.tooShort(0))), ({ $0.removeLast() }, .hello(.tooShort(53))),
            ({ $0[0] = 2 }, .hello(.unknownVersion(2))), ({ $0[2] = 1 }, .hello(.limitOutOfRange(16_842_752))),
            ({ $0.replaceSubrange(22..<54, with: [UInt8](repeating: 0, count: 32)) }, .unusableShare),
            ({ $0.replaceSubrange(22..<54, with: [UInt8](repeating: 0xFF, count: 32)) }, .unusableShare),
        ]
        for (change, failure) in changes {
            var pair = try ExtendedPair()
            pair.helloOnAir = change
            pair.run()
            #expect(pair.outcome == .failed(failure))
        }
    }

    @Test func `a stale hello is read again, a few times, with a fresh share each`() throws {
        var pair = try ExtendedPair()
        pair.helloOnAir = { $0[6] ^= 1 }
        pair.run()
        for _ in 0..<3 { pair.fire(after: .seconds(1)) }
        #expect(pair.outcome.reason == .stale)
        let tags = Set(
            pair.clientActions.compactMap { action -> [UInt8]? in
                if case .write(_, _, let frame) = action, frame[3] == 0 { Array(frame[1...2]) } else { nil }
            })
        #expect(tags.count == 3)
        pair = try ExtendedPair()
        pair.helloOnAir = { $0[6] ^= 1 }
        pair.run()
        pair.helloOnAir = { _ in }
        pair.fire(after: .seconds(1))
        #expect(pair.outcome == .handoff(ExtendedHostFixture.handoff, .sealed))
    }

    @Test func `a taken tag has hello read again`() throws {
        var pair = try ExtendedPair()
        pair.decision = nil
        var client = pair.client
        _ = client.handle(.connected, at: pair.host.now)
        _ = client.handle(.discovered([ExtendedPair.both]), at: pair.host.now)
        _ = client.handle(.helloRead(pair.host.hello("client") ?? []), at: pair.host.now)
        _ = client.handle(.subscribed(mtu: 185), at: pair.host.now)
        #expect(client.handle(.writeRefused(.tagInUse), at: pair.host.now).actions == [.readHello(1, instance: 1)])
    }

    @Test func `whatever is altered, foreign or plain does not count as a handoff`() throws {
        var pair = try ExtendedPair()
        pair.frameOnAir = {
            $0[$0.count - 1] ^= 1; return true
        }
        pair.run()
        #expect(pair.outcome == nil)
        let tag = try #require(pair.client.session?.tag)
        // Not sealed, though it is for us.
        pair.tell(
            .notified(
                Frame(
                    moreFollows: false, isPlaintext: true, tag: tag, sequence: 0,
                    data: ExtendedHostFixture.handoff.encoded()[...]
                ).bytes))
        for junk: [UInt8] in [
            [], [0], [255, tag.high, tag.low, 0, 1], [0, tag.high, tag.low, 9, 1], [0, tag.high ^ 1, tag.low, 0, 1],
        ] {
            pair.tell(.notified(junk))
        }
        #expect(pair.outcome == nil && pair.client.heldOutcome == nil)
        pair.fire(after: .seconds(20))
        #expect(pair.outcome == .failed(.noAnswer))
    }

    @Test func `a sealed answer is taken in spite of a plaintext reject that somebody slipped in`() throws {
        var pair = try ExtendedPair()
        pair.decision = nil
        pair.run()
        let tag = try #require(pair.client.session?.tag)
        let forged = Envelope.reject(appId: nil, reason: .unauthorized, message: "").encoded()
        pair.tell(
            .notified(Frame(moreFollows: false, isPlaintext: true, tag: tag, sequence: 0, data: forged[...]).bytes))
        #expect(pair.client.heldOutcome.reason == .unauthorized)
        let join = try #require(pair.host.machine.admissions.pending.first?.request.id)
        pair.deliver(pair.host.decide(join))
        #expect(pair.outcome == .handoff(ExtendedHostFixture.handoff, .sealed))
    }

    @Test func `the handoff counts, whatever becomes of the receipt`() throws {
        for end in [
            ExtendedExchangeInput.disconnected(LinkFailure(.disconnected)), .writeFailed(LinkFailure(.other)),
            .writeRefused(0x0E),
        ] {
            var (client, host) = (try ExtendedPair.client(at: .now), try ExtendedHostFixture())
            host.connect("client")
            _ = client.handle(.connected, at: host.now)
            _ = client.handle(.discovered([ExtendedPair.both]), at: host.now)
            _ = client.handle(.helloRead(host.hello("client") ?? []), at: host.now)
            let step = client.handle(.subscribed(mtu: 517), at: host.now)
            guard case .write(_, _, let frame)? = step.actions.first else {
                Issue.record("nothing is written first: \(step.actions)")
                continue
            }
            _ = client.handle(.written, at: host.now)
            let join = try #require(host.write(frame, from: "client", mtu: 517).joins.first)
            let answer = host.pump(host.decide(join)).frames
            #expect(client.handle(.notified(answer[0].bytes), at: host.now).outcome == nil)
            #expect(client.handle(end, at: host.now).outcome == .handoff(ExtendedHostFixture.handoff, .sealed))
        }
    }

    // MARK: Idempotence

    @Test func `who asks again with the same id gets the same, and the app is asked once`() throws {
        let id = JoinRequestID()
        var pair = try ExtendedPair(requestID: id)
        pair.decision = nil
        pair.run()
        let join = try #require(pair.host.machine.admissions.pending.first?.request.id)
        // The link drops while the app thinks; it goes on thinking.
        #expect(pair.host.machine.centralDisconnected("client", at: pair.host.now).isEmpty)
        pair.host.connect("client")
        pair.client = try ExtendedPair.client(requestID: id, at: pair.host.now)
        pair.run()
        #expect(pair.hostEvents == [.requested(join, "client"), .joined(join, "client")])
        // It drops again, and the answer is made meanwhile.
        _ = pair.host.machine.centralDisconnected("client", at: pair.host.now)
        let decided = pair.host.decide(join, .handoff(payload: ["seat": "1"]))
        #expect(decided == [.report(.failed(join, "client", .disconnected))])
        for _ in 0..<2 {
            pair.host.connect("client")
            pair.client = try ExtendedPair.client(requestID: id, at: pair.host.now)
            pair.run()
            _ = pair.host.machine.centralDisconnected("client", at: pair.host.now)
        }
        #expect(pair.outcome == .handoff(.handoff(appId: "app", sessionId: "s", payload: ["seat": "1"]), .sealed))
        #expect(pair.hostEvents.filter { $0 == .requested(join, "client") }.count == 1)
        #expect(pair.hostEvents.filter { $0 == .delivered(join, "client") }.count == 1)
        // 60 s later it is a new request.
        _ = pair.host.fire(after: .seconds(61))
        pair.host.connect("client")
        pair.client = try ExtendedPair.client(requestID: id, at: pair.host.now)
        pair.run()
        #expect(pair.host.machine.admissions.pending.count == 1)
    }

    @Test func `a request that differs under the same id is another request`() throws {
        let id = JoinRequestID()
        var host = try ExtendedHostFixture()
        host.connect("a")
        for name: JSONValue in ["x", "y"] {
            let client = try RawExtendedClient(host.hello("a"), request: RawExtendedClient.request(id, ["n": name]))
            #expect(host.open(client, from: "a").joins.count == 1)
        }
    }

    @Test func `the memory of answers is bounded`() throws {
        var memory = AnswerMemory()
        let now = Instant.now
        func key() -> AnswerMemory.Key? {
            let bytes = RawExtendedClient.request(JoinRequestID())
            return (try? Envelope.decode(bytes, as: .host)).flatMap { AnswerMemory.Key($0, bytes: bytes) }
        }
        let small = HostReply(envelope: [1], content: .handoff)
        for number in 0..<100 { memory.remember(try #require(key()), JoinID(UInt64(number)), small, at: now) }
        #expect(memory.count == ProtocolLimits.rememberedAnswers)
        let big = HostReply(envelope: [UInt8](repeating: 0, count: 1_024 * 1_024), content: .handoff)
        for number in 0..<10 { memory.remember(try #require(key()), JoinID(UInt64(number)), big, at: now) }
        #expect(memory.byteCount <= ProtocolLimits.rememberedAnswerBytes && memory.count == 4)
        memory.expire(at: now + .seconds(60))
        #expect(memory.count == 0 && memory.byteCount == 0)
    }

    @Test(arguments: [
        "", "AAECAwQFBgcICQoLDA0ODw==", "AAECAwQFBgcICQoLDA0ODx", "AAECAwQFBgcICQoLDA0OD", "AAECAwQFBgcICQoLDA0OD+",
    ])
    func `what is no request id is none`(_ text: String) {
        #expect(JoinRequestID(text) == nil)
    }

    @Test func `request ids are base64url`() throws {
        #expect(JoinRequestID("AAECAwQFBgcICQoLDA0ODw")?.bytes == Array(0..<16))
        #expect(JoinRequestID("_-ECAwQFBgcICQoLDA0ODw")?.bytes.prefix(2) == [0xFF, 0xE1])
        for _ in 0..<50 {
            let id = JoinRequestID()
            #expect(JoinRequestID(id.text) == id && id.text.utf8.count == 22)
        }
    }
}

extension ExtendedOutcome? {
    var reason: RejectReason? {
        if case .failed(.rejected(let rejection, _))? = self { rejection.reason } else { nil }
    }
}
