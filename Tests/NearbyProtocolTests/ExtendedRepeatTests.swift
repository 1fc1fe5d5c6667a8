// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

/// Answers that go out more than once: to who subscribes late, and to who asks again.
@Suite struct ExtendedRepeatTests {
    var host: ExtendedHostFixture
    private let id = JoinRequestID()

    init() throws {
        host = try ExtendedHostFixture(payload: ["text": .string(String(repeating: "x", count: 600))])
    }

    private mutating func client(_ peer: PeerID) throws -> RawExtendedClient {
        try RawExtendedClient(host.hello(peer), request: RawExtendedClient.request(id))
    }

    /// Every whole message in the frames.
    private func messages(_ frames: [(peer: PeerID, bytes: [UInt8])]) throws -> [[UInt8]] {
        var assembly = FrameAssembly(sealedLimit: 70_000, plaintextLimit: 512)
        return try frames.compactMap { frame in
            let verdict = assembly.take(try Frame(frame.bytes), at: host.now)
            return if case .complete(let message, _) = verdict { message } else { nil }
        }
    }

    private mutating func receipt(_ client: RawExtendedClient, from peer: PeerID) throws -> [ExtendedHostEvent] {
        let receipt = try #require(client.channel.sealer.seal([]))
        return host.write(message: receipt.bytes, tag: client.tag, from: peer).events
    }

    // MARK: The same bytes

    @Test mutating func `a late subscriber gets the same bytes once more`() throws {
        host.connect("a", subscribed: false)
        var client = try client("a")
        let join = try #require(host.open(client, from: "a").joins.first)
        _ = host.machine.unsubscribed("a", at: host.now)
        let first = host.pump(host.decide(join)).frames
        let again = host.pump(host.machine.subscribed("a", mtu: 185, at: host.now)).frames
        #expect(first.count > 1)
        #expect(again.map(\.bytes) == first.map(\.bytes))
        #expect(client.read(again, at: host.now)?.type == .handoff)
        // Not a third time.
        let third = host.machine.subscribed("a", mtu: 185, at: host.now)
        #expect(third.isEmpty)
    }

    @Test mutating func `at another MTU the frames differ, and not what is sealed in them`() throws {
        host.connect("a", subscribed: false)
        let client = try client("a")
        let join = try #require(host.open(client, from: "a").joins.first)
        _ = host.machine.unsubscribed("a", at: host.now)
        let first = host.pump(host.decide(join)).frames
        let again = host.pump(host.machine.subscribed("a", mtu: 64, at: host.now)).frames
        #expect(first.map(\.bytes) != again.map(\.bytes))
        #expect(again.allSatisfy { $0.bytes.count <= 59 })
        #expect(try messages(first) == messages(again))
    }

    @Test mutating func `who asks again gets the same envelope under other keys, and no key seals two`() throws {
        var sealed: [FrameTag: Set<[UInt8]>] = [:]
        var envelopes: Set<Envelope> = []
        for attempt in 0..<8 {
            // Now and then the link drops in the middle of the answer, or the client subscribes late.
            host.connect("a", subscribed: attempt % 3 != 0)
            var client = try client("a")
            var actions = host.open(client, from: "a")
            if attempt % 3 == 0 { _ = host.machine.unsubscribed("a", at: host.now) }
            for join in actions.joins { actions += host.decide(join) }
            var frames = host.pump(actions).frames
            frames += host.pump(host.machine.subscribed("a", mtu: 23 + 40 * attempt, at: host.now)).frames
            sealed[client.tag, default: []].formUnion(try messages(frames))
            if let envelope = client.read(frames, at: host.now) { envelopes.insert(envelope) }
            _ = host.machine.centralDisconnected("a", at: host.now)
        }
        #expect(sealed.count == 8)
        #expect(sealed.values.allSatisfy { $0.count == 1 })
        #expect(Set(sealed.values.joined()).count == 8)
        #expect(envelopes.count == 1)
    }

    @Test func `a sealer never uses a number twice`() throws {
        let key = SecretBytes(copying: [UInt8](repeating: 1, count: 32))
        let tag = FrameTag(high: 1, low: 2)
        let channel = SealedChannel(.host, toHost: key, toClient: key, tag: tag)
        // Copies of a machine share the count.
        let copy = channel
        let numbers = try [channel, copy, channel].map { try #require($0.sealer.seal([7])).number }
        #expect(numbers == [0, 1, 2])
    }

    // MARK: Counting

    /// `a` has lost its link after the decision, so that its handoff is remembered and not delivered.
    private mutating func cutOff() throws -> JoinID {
        host.connect("a")
        let client = try client("a")
        let join = try #require(host.open(client, from: "a").joins.first)
        let handed = host.pump(host.decide(join)).all.events
        #expect(handed.last == .handedOff(join, "a"))
        let lost = host.machine.centralDisconnected("a", at: host.now)
        #expect(lost.events == [.failed(join, "a", .disconnected)])
        return join
    }

    private mutating func returns(_ peer: PeerID, mayRepeat: Bool) throws -> (Envelope?, [ExtendedHostEvent]) {
        host.connect(peer)
        var client = try client(peer)
        var writer = FrameWriter(client.opening, tag: client.tag, frameBytes: 182)
        var actions: [ExtendedHostAction] = []
        while let frame = writer.next() {
            actions += host.machine.write(
                host.request(), from: peer, frame, mtu: 185, at: host.now, mayRepeat: { _ in mayRepeat })
        }
        let (frames, all) = host.pump(actions)
        return (client.read(frames, at: host.now), all.events)
    }

    @Test mutating func `whose place was taken meanwhile is told that the host is busy, sealed`() throws {
        let join = try cutOff()
        let (busy, events) = try returns("b", mayRepeat: false)
        #expect(busy?.rejection?.reason == .busy)
        #expect(events.first == .failed(nil, "b", .busy))
        // When there is a place again, it gets what it was promised.
        let (handoff, later) = try returns("c", mayRepeat: true)
        #expect(handoff?.type == .handoff)
        #expect(later.first == .joined(join, "c"))
    }

    @Test mutating func `who has it already gets it again, and counts once`() throws {
        host.connect("a")
        let client = try client("a")
        let join = try #require(host.open(client, from: "a").joins.first)
        _ = host.pump(host.decide(join))
        let told = try receipt(client, from: "a")
        #expect(told == [.delivered(join, "a")])
        let (handoff, events) = try returns("b", mayRepeat: false)
        #expect(handoff?.type == .handoff)
        #expect(events.first == .repeated(join, "b"))
        #expect(!events.contains { if case .joined = $0 { true } else { false } })
        let left = host.machine.centralDisconnected("b", at: host.now)
        #expect(left.events.isEmpty)
    }

    @Test mutating func `a join is delivered once, though its answer is forgotten before the second receipt`() throws {
        host.connect("a", "b")
        let first = try client("a")
        let join = try #require(host.open(first, from: "a").joins.first)
        _ = host.pump(host.decide(join))
        _ = host.fire(after: .seconds(50))
        let second = try client("b")
        _ = host.pump(host.open(second, from: "b"))
        let told = try receipt(first, from: "a")
        #expect(told == [.delivered(join, "a")])
        _ = host.fire(after: .seconds(11))
        #expect(host.machine.memory.count == 0)
        let after = try receipt(second, from: "b")
        #expect(after.isEmpty)
    }

    @Test mutating func `a join has not failed as long as another attempt of it goes on`() throws {
        host.connect("a")
        let first = try client("a")
        let join = try #require(host.open(first, from: "a").joins.first)
        _ = host.pump(host.decide(join))
        host.connect("b")
        let second = try client("b")
        _ = host.pump(host.open(second, from: "b"))
        let lost = host.machine.centralDisconnected("a", at: host.now)
        #expect(lost.events.isEmpty)
        let told = try receipt(second, from: "b")
        #expect(told == [.delivered(join, "b")])
    }
}
