// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct ExtendedHostTests {
    var host: ExtendedHostFixture

    init() throws {
        host = try ExtendedHostFixture()
    }

    @Test mutating func `a whole exchange: request, handoff, receipt`() throws {
        host.connect("a")
        var client = try RawExtendedClient(host.hello("a"))
        let asked = host.open(client, from: "a")
        let join = try #require(asked.joins.first)
        #expect(asked.events == [.requested(join, "a")])
        let answered = host.pump(host.decide(join))
        #expect(client.read(answered.frames, at: host.now) == ExtendedHostFixture.handoff)
        #expect(answered.all.events == [.handedOff(join, "a")])
        let receipt = try #require(client.channel.sealer.seal([]))
        #expect(
            host.write(message: receipt.bytes, tag: client.tag, from: "a").events == [.delivered(join, "a")])
        #expect(host.machine.attempts.count == 0)
        #expect(host.machine.centralDisconnected("a", at: host.now).isEmpty)
    }

    @Test mutating func `a long handoff tells of its progress, and its receipt may overtake the radio`() throws {
        var long = try ExtendedHostFixture(payload: ["text": .string(String(repeating: "x", count: 2_000))])
        long.connect("a")
        let client = try RawExtendedClient(long.hello("a"))
        let join = try #require(long.open(client, from: "a").joins.first)
        var (frames, actions) = (0, long.decide(join))
        while case .notify(let id, let bytes, "a")? = actions.first {
            frames += 1
            #expect(bytes.count <= 180)
            if bytes[0] & 1 == 0 { break }
            actions = long.machine.frameSent(id, at: long.now)
            #expect(actions.count == 2)
        }
        #expect(frames == 12)
        let receipt = try #require(client.channel.sealer.seal([]))
        #expect(
            long.write(message: receipt.bytes, tag: client.tag, from: "a").events == [
                .handedOff(join, "a"), .delivered(join, "a"),
            ])
    }

    // MARK: Two at once

    @Test mutating func `two clients get their own, whoever hears it`() throws {
        host.connect("a", "b")
        var first = try RawExtendedClient(host.hello("a"))
        var second = try RawExtendedClient(host.hello("b"))
        let joinA = try #require(host.open(first, from: "a").joins.first)
        let joinB = try #require(host.open(second, from: "b").joins.first)
        let actions =
            host.decide(joinA, .handoff(payload: ["seat": "1"])) + host.decide(joinB, .handoff(payload: ["seat": "2"]))
        let all = host.pump(actions).frames
        // The one's key does not open the other's.
        var eavesdropper = first
        #expect(eavesdropper.read(all, at: host.now, tag: second.tag) == nil)
        #expect(first.read(all, at: host.now)?.payload == ["seat": "1"])
        #expect(second.read(all, at: host.now)?.payload == ["seat": "2"])
    }

    @Test mutating func `two apps on one phone at once`() throws {
        host.connect("phone")
        var (one, two) = (
            try RawExtendedClient(host.hello("phone"), request: RawExtendedClient.request(JoinRequestID(), ["n": "1"])),
            try RawExtendedClient(host.hello("phone"), request: RawExtendedClient.request(JoinRequestID(), ["n": "2"]))
        )
        try #require(one.tag != two.tag)
        // Their frames come in turns, at the smallest MTU.
        var writers = [one, two].map { FrameWriter($0.opening, tag: $0.tag, frameBytes: 20) }
        var joins: [JoinID] = []
        while writers.contains(where: { !$0.isDone }) {
            for position in writers.indices {
                if let frame = writers[position].next() { joins += host.write(frame, from: "phone", mtu: 23).joins }
            }
        }
        #expect(joins.count == 2)
        var answers: [ExtendedHostAction] = []
        for join in joins { answers += host.decide(join) }
        let frames = host.pump(answers).frames
        #expect(one.read(frames, at: host.now) != nil)
        #expect(two.read(frames, at: host.now) != nil)
    }

    @Test mutating func `a tag ground to equal another's is refused by an ATT error, so nobody else hears of it`()
        throws
    {
        host.connect("victim", "attacker")
        let victim = try RawExtendedClient(host.hello("victim"))
        _ = host.hello("attacker")
        var writer = FrameWriter(victim.opening, tag: victim.tag, frameBytes: 100)
        let frame = writer.next() ?? []
        #expect(host.write(frame, from: "victim").faults.isEmpty)
        // While the victim's message is under way, while it is decided, and while its answer travels.
        func isRefused(_ host: inout ExtendedHostFixture) -> Bool {
            let actions = host.write(
                Frame(moreFollows: true, isPlaintext: false, tag: victim.tag, sequence: 0, data: [1, 2, 3]).bytes,
                from: "attacker")
            return actions.refusals == [.tagInUse] && host.pump(actions).frames.isEmpty
        }
        #expect(isRefused(&host))
        var actions: [ExtendedHostAction] = []
        while let frame = writer.next() { actions += host.write(frame, from: "victim") }
        #expect(isRefused(&host))
        let answered = host.decide(try #require(actions.joins.first))
        #expect(isRefused(&host))
        _ = host.pump(answered)
        #expect(isRefused(&host))
        _ = host.machine.centralDisconnected("victim", at: host.now)
        #expect(!isRefused(&host))
    }

    // MARK: What does not open

    @Test mutating func `an unknown, used, expired or foreign sid is stale, and no attempt`() throws {
        var guarded = try ExtendedHostFixture(passcode: "1234")
        guarded.connect("a", "b")
        var client = try RawExtendedClient(guarded.hello("a"), passcode: "1234")
        // Another device cannot use it up.
        #expect(guarded.plaintextReason(guarded.open(client, from: "b")) == .stale)
        #expect(guarded.open(client, from: "a").joins.count == 1)
        _ = guarded.machine.centralDisconnected("a", at: guarded.now)
        guarded.connect("a")
        #expect(guarded.plaintextReason(guarded.open(client, from: "a")) == .stale)
        client = try RawExtendedClient(guarded.hello("a"), passcode: "1234")
        _ = guarded.fire(after: .seconds(30))
        #expect(guarded.plaintextReason(guarded.open(client, from: "a")) == .stale)
        client = try RawExtendedClient(guarded.hello("a"), passcode: "1234")
        client.opening[3] ^= 1
        #expect(guarded.plaintextReason(guarded.open(client, from: "a")) == .stale)
        for _ in 0..<30 { _ = guarded.plaintextReason(guarded.open(client, from: "a")) }
        client = try RawExtendedClient(guarded.hello("a"), passcode: "1234")
        #expect(guarded.open(client, from: "a").joins.count == 1)
    }

    @Test(arguments: [
        [UInt8](repeating: 0, count: 32), [UInt8](repeating: 0xFF, count: 32), [1] + [UInt8](repeating: 0, count: 31),
    ]) mutating func `a share that is none ends as a wrong passcode does`(_ share: [UInt8]) throws {
        var guarded = try ExtendedHostFixture(passcode: "1234")
        guarded.connect("a")
        var client = try RawExtendedClient(guarded.hello("a"), passcode: "1234")
        client.opening.replaceSubrange(18..<50, with: share)
        let actions = guarded.write(message: client.opening, tag: FrameTag(high: share[0], low: share[1]), from: "a")
        #expect(actions.events == [.attemptFailed("a")])
        #expect(guarded.plaintextReason(actions) == .unauthorized)
    }

    @Test mutating func `each flipped bit of message 0 keeps it from opening`() throws {
        host.connect("a")
        let length = try RawExtendedClient(host.hello("a")).opening.count
        for bit in stride(from: 0, to: length * 8, by: 1) {
            var client = try RawExtendedClient(host.hello("a"))
            client.opening[bit / 8] ^= 1 << UInt8(bit % 8)
            let actions = host.open(client, from: "a")
            let reason = host.plaintextReason(actions)
            let expected: RejectReason =
                bit < 128 ? .stale : (144..<160).contains(bit) ? .malformed : .unauthorized
            #expect(reason == expected, "bit \(bit)")
            #expect(actions.joins.isEmpty)
        }
    }

    @Test mutating func `flags altered in flight: with a passcode the attempt fails, and without`() throws {
        for passcode in [nil, "1234"] {
            var host = try ExtendedHostFixture(passcode: passcode)
            host.connect("a")
            // A flag that means nothing yet, "basic refused", and a limit of 512 bytes: a client goes on with all of them.
            for (range, bytes) in [(1..<2, [UInt8(0x80)]), (1..<2, [2]), (2..<6, [0, 0, 2, 0])] {
                var hello = host.hello("a") ?? []
                if range == 1..<2 { hello[1] ^= bytes[0] } else { hello.replaceSubrange(range, with: bytes) }
                let client = try RawExtendedClient(hello, passcode: passcode)
                #expect(host.plaintextReason(host.open(client, from: "a")) == .unauthorized)
            }
            var hello = host.hello("a") ?? []
            hello.append(7)
            #expect(
                host.plaintextReason(host.open(try RawExtendedClient(hello, passcode: passcode), from: "a"))
                    == .unauthorized)
        }
    }

    @Test(arguments: [0, 1, 17, 49, 65]) mutating func `a message too short is malformed`(_ size: Int) throws {
        host.connect("a")
        let tag = FrameTag(high: 1, low: 2)
        let actions = host.write(message: [UInt8](repeating: 0, count: size), tag: tag, from: "a")
        #expect(host.plaintextReason(actions) == .malformed)
    }

    @Test mutating func `a tag that is not the share's is malformed`() throws {
        host.connect("a")
        let client = try RawExtendedClient(host.hello("a"))
        let tag = FrameTag(high: client.tag.high, low: client.tag.low ^ 1)
        #expect(host.plaintextReason(host.write(message: client.opening, tag: tag, from: "a")) == .malformed)
    }

    @Test mutating func `what was sealed for the one direction or attempt is no receipt`() throws {
        host.connect("a")
        var client = try RawExtendedClient(host.hello("a"))
        let join = try #require(host.open(client, from: "a").joins.first)
        let frames = host.pump(host.decide(join)).frames
        let echoed = Array(try Frame(try #require(frames.first).bytes).data)
        let opening = try #require(OpeningMessage(client.opening))
        for bytes in [echoed, opening.sealed, client.opening, [], [UInt8](repeating: 0, count: 16)] {
            #expect(host.write(message: bytes, tag: client.tag, from: "a").refusals == [.tagInUse])
        }
        // One with something in it opens, but says nothing; then it is too late for the true one.
        let wrong = try #require(client.channel.sealer.seal([1]))
        #expect(host.write(message: wrong.bytes, tag: client.tag, from: "a").events.isEmpty)
        #expect(host.machine.attempts.count == 1)
        #expect(client.read(frames, at: host.now) != nil)
    }

    // MARK: What opens

    @Test mutating func `sealed requests are judged in the protocol's order, and rejects are sealed`() throws {
        let cases: [([UInt8], RejectReason)] = [
            (Array("no".utf8), .malformed), (Envelope.joinRequest(appId: "other").encoded(), .appMismatch),
            (Array("{\"type\":\"join_request\",\"protocolVersion\":2}".utf8), .unsupportedVersion),
            (ExtendedHostFixture.handoff.encoded(), .malformed), ([], .malformed),
        ]
        for (request, reason) in cases {
            host.connect("a")
            var client = try RawExtendedClient(host.hello("a"), request: request)
            let answered = host.pump(host.open(client, from: "a"))
            #expect(answered.all.joins.isEmpty)
            #expect(client.read(answered.frames, at: host.now)?.rejection?.reason == reason)
            _ = host.machine.centralDisconnected("a", at: host.now)
        }
    }

    @Test mutating func `the announced limit holds both ways`() throws {
        var small = try ExtendedHostFixture(maximumEnvelope: 512)
        small.connect("a")
        let big = Envelope.joinRequest(appId: "app", payload: ["x": .string(String(repeating: "x", count: 460))])
        var client = try RawExtendedClient(small.hello("a"), request: big.encoded())
        var answered = small.pump(small.open(client, from: "a"))
        #expect(client.read(answered.frames, at: small.now)?.rejection?.reason == .tooLarge)
        client = try RawExtendedClient(small.hello("a"))
        let join = try #require(small.open(client, from: "a").joins.first)
        answered = small.pump(small.decide(join, .handoff(payload: ["x": .string(String(repeating: "x", count: 500))])))
        #expect(client.read(answered.frames, at: small.now)?.rejection?.reason == .tooLarge)
        #expect(answered.all.events.first == .failed(join, "a", .handoffTooLarge(size: 587, limit: 512)))
        // A byte more than any message may have is not even assembled.
        client = try RawExtendedClient(small.hello("a"), request: [UInt8](repeating: 0x20, count: 600))
        #expect(small.open(client, from: "a").faults.first == .tooLong)
    }

    @Test mutating func `64 KiB go over, and one byte more does not`() throws {
        let empty = Envelope.handoff(appId: "app", sessionId: "s", payload: ["x": ""]).encoded().count
        for (more, fits) in [(0, true), (1, false)] {
            let text = String(repeating: "x", count: ProtocolLimits.extendedEnvelopeBytes - empty + more)
            host.connect("a")
            var client = try RawExtendedClient(host.hello("a"))
            let join = try #require(host.open(client, from: "a", mtu: 517).joins.first)
            let frames = host.pump(host.decide(join, .handoff(payload: ["x": .string(text)]))).frames
            let answer = client.read(frames, at: host.now)
            #expect((answer?.payload?.string("x") == text) == fits)
            #expect((answer?.rejection?.reason == .tooLarge) == !fits)
            _ = host.machine.centralDisconnected("a", at: host.now)
        }
    }

    @Test mutating func `at MTU 23 everything works, and the MTU is taken afresh for each message`() throws {
        host.connect("a")
        var client = try RawExtendedClient(host.hello("a"))
        let join = try #require(host.open(client, from: "a", mtu: 23).joins.first)
        let frames = host.pump(host.decide(join)).frames
        #expect(frames.allSatisfy { $0.bytes.count <= 18 } && frames.count > 1)
        #expect(client.read(frames, at: host.now) == ExtendedHostFixture.handoff)

        _ = host.machine.centralDisconnected("a", at: host.now)
        host.connect("a")
        client = try RawExtendedClient(host.hello("a"))
        let second = try #require(host.open(client, from: "a", mtu: 23).joins.first)
        _ = host.machine.subscribed("a", mtu: 517, at: host.now)
        #expect(host.pump(host.decide(second)).frames.count == 1)
    }

    @Test(arguments: [(0, 180), (20, 20), (1, 18), (100, 100), (65_535, 180)])
    mutating func `a client says what it can take`(_ said: Int, _ largest: Int) throws {
        host.connect("a")
        let client = try RawExtendedClient(host.hello("a"), largestNotification: said)
        let join = try #require(host.open(client, from: "a").joins.first)
        let payload: JSONObject = ["x": .string(String(repeating: "x", count: 1_000))]
        let frames = host.pump(host.decide(join, .handoff(payload: payload))).frames
        #expect(frames.map(\.bytes.count).max() == largest)
    }

    @Test mutating func `reserved keys reach no app, and no app can set them`() throws {
        host.connect("a")
        let request = RawExtendedClient.request(JoinRequestID(), ["name": "x", "ndk.other": 1])
        var client = try RawExtendedClient(host.hello("a"), request: request)
        let asked = host.open(client, from: "a")
        for case .decide(let join) in asked { #expect(join.payload == ["name": "x"]) }
        let join = try #require(asked.joins.first)
        let answered = host.pump(host.decide(join, .handoff(payload: ["ndk.x": 1])))
        #expect(client.read(answered.frames, at: host.now)?.rejection?.reason == .internal)
        #expect(throws: EnvelopeError.self) { try ExtendedHostFixture(payload: ["ndk.x": 1]) }
    }
}
