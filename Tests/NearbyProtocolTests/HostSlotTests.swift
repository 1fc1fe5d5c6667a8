// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct HostSlotTests {
    var host: HostFixture

    init() throws {
        host = try HostFixture()
    }

    private mutating func ask(_ peers: PeerID...) {
        for peer in peers {
            host.connect(peer)
            _ = host.write(from: peer)
        }
    }

    @Test mutating func `admissions run in parallel, answers one exchange at a time`() {
        ask("a", "b", "c")
        #expect(host.decide(2).notifications.count == 1)
        #expect(host.decide(1).isEmpty)
        #expect(host.decide(3).isEmpty)
        #expect(
            host.disconnect("b") == [
                .report(.delivered(2, "b", Delivery(.disconnected, subscriptionSeen: true))),
                .notify(HostFixture.handoff, "a"), .report(.handedOff(1, "a")),
            ])
    }

    @Test mutating func `a slot ends after a second if others wait, and delivery is judged all the same`() {
        ask("a", "b")
        _ = host.decide(1)
        host.pass(.milliseconds(400))
        _ = host.decide(2)
        #expect(host.machine.nextDeadline == host.now + .milliseconds(600))
        #expect(host.fire(after: .milliseconds(599)).isEmpty)
        #expect(host.fire(after: .milliseconds(1)).notifications.count == 1)
        #expect(
            host.disconnect("a").events == [
                .delivered(1, "a", Delivery(.disconnected, subscriptionSeen: true))
            ])
    }

    @Test mutating func `one that comes late in a slot need not wait`() {
        ask("a", "b")
        _ = host.decide(1)
        host.pass(.seconds(3))
        #expect(host.decide(2).notifications.count == 1)
    }

    @Test mutating func `a late timer changes no order`() {
        ask("a", "b", "c")
        for join: JoinID in [1, 2, 3] { _ = host.decide(join) }
        // Nobody fired the timer; the next input finds what was due.
        host.pass(.seconds(2))
        let actions = host.machine.unsubscribed("x", at: host.now)
        #expect(actions == [.notify(HostFixture.handoff, "b"), .report(.handedOff(2, "b"))])
    }

    @Test mutating func `sixteen answers may wait, one a device, and then it is busy`() {
        let peers = (0..<18).map { PeerID("p\($0)") }
        for peer in peers {
            host.connect(peer)
            _ = host.write(from: peer)
        }
        #expect(host.decide(1).notifications.count == 1)
        for number in 2...17 { #expect(host.decide(JoinID(UInt64(number))).isEmpty) }
        let last = host.decide(18)
        #expect(last.events.first == .failed(18, "p17", .busy))
        #expect(last.contains { $0.rejectReason == .busy })
        // Who comes now is told at once, and the app not asked.
        host.connect("late")
        let late = host.write(from: "late")
        #expect(late.first == .acknowledge(19) && late.joins.isEmpty)
        #expect(late.contains { $0.rejectReason == .busy })
    }

    @Test mutating func `fifty clients at once are all answered within the bounds`() {
        let peers = (0..<50).map { PeerID("p\($0)") }
        var answers = 0
        for peer in peers {
            host.connect(peer)
            #expect(host.write(from: peer).joins.count == 1)
        }
        for number in 1...50 { answers += host.decide(JoinID(UInt64(number))).notifications.count }
        #expect(host.machine.footprint <= 50 + 16)
        while let deadline = host.machine.nextDeadline {
            host.now = deadline
            answers += host.machine.timerFired(at: deadline).notifications.count
        }
        #expect(answers == 50)
        for peer in peers { _ = host.disconnect(peer) }
        #expect(host.machine.footprint == 0)
    }

    @Test mutating func `more than sixty-four admissions at a time are busy`() {
        for number in 0..<64 {
            host.connect(PeerID("p\(number)"))
            #expect(host.write(from: PeerID("p\(number)")).joins.count == 1)
        }
        host.connect("late")
        let late = host.write(from: "late")
        #expect(late.joins.isEmpty && late.contains { $0.rejectReason == .busy })
    }

    @Test mutating func `one that keeps asking cannot hold the slot`() {
        ask("a", "b")
        _ = host.write(Array("x".utf8), from: "noise")
        #expect(host.decide(1).isEmpty)
        // The noisy one's next reject waits behind the answer for a.
        #expect(host.write(Array("y".utf8), from: "noise").notifications.isEmpty)
        let actions = host.fire(after: .seconds(1))
        #expect(actions == [.notify(HostFixture.handoff, "a"), .report(.handedOff(1, "a"))])
    }

    @Test mutating func `rejects wait for the slot too`() {
        ask("a")
        _ = host.decide(1)
        #expect(host.write(Array("x".utf8), from: "b") == [.acknowledge(2)])
        #expect(host.disconnect("a").contains { $0.rejectReason == .malformed })
    }

    // MARK: Long writes that come to nothing

    private static let start = Array((#"{"k":""# + String(repeating: "x", count: 400)).utf8)

    /// Else its join is neither delivered nor failed, and keeps its place among a host's `--max-joins` for ever.
    @Test mutating func `a queued answer that the reject of half a request replaces is told as replaced`() {
        ask("a", "b")
        #expect(host.write(Self.start, from: "a") == [.acknowledge(3)])
        host.pass(.milliseconds(4_500))
        #expect(host.decide(2).notifications.count == 1)
        #expect(host.decide(1).isEmpty)
        #expect(
            host.fire(after: .milliseconds(500)).events == [
                .failed(nil, "a", .remainderTimedOut), .failed(1, "a", .replaced),
            ])
        let actions = host.fire(after: .milliseconds(500))
        #expect(actions.notifications.count == 1 && actions.contains { $0.rejectReason == .malformed })
    }

    @Test mutating func `a request that is being decided when half of another is rejected is replaced, too`() {
        ask("a")
        _ = host.write(Self.start, from: "a")
        let actions = host.fire(after: .seconds(5))
        #expect(actions.contains(.cancelDecision(1)))
        #expect(actions.events.prefix(2) == [.failed(nil, "a", .remainderTimedOut), .failed(1, "a", .replaced)])
        #expect(actions.contains { $0.rejectReason == .malformed })
        #expect(host.decide(1).isEmpty)
    }

    // MARK: Late subscribers

    @Test mutating func `who subscribes after its answer gets it again, once`() {
        host.connect("a", subscribed: false)
        _ = host.write(from: "a")
        #expect(host.decide(1).notifications.count == 1)
        host.pass(.milliseconds(4_999))
        #expect(
            host.machine.subscribed("a", at: host.now) == [
                .notify(HostFixture.handoff, "a"), .report(.answeredAgain("a")),
            ])
        _ = host.machine.unsubscribed("a", at: host.now)
        #expect(host.machine.subscribed("a", at: host.now).isEmpty)
        // It has the full time again.
        #expect(host.fire(after: .milliseconds(4_999)).isEmpty)
        #expect(host.disconnect("a").events.count == 1)
    }

    @Test mutating func `five seconds later is too late`() {
        host.connect("a", subscribed: false)
        _ = host.write(from: "a")
        _ = host.decide(1)
        host.pass(.seconds(5))
        let actions = host.machine.subscribed("a", at: host.now)
        #expect(actions == [.report(.delivered(1, "a", Delivery(.waited, subscriptionSeen: false)))])
    }

    @Test mutating func `who was subscribed is not answered again`() {
        ask("a")
        _ = host.decide(1)
        #expect(host.machine.subscribed("a", at: host.now).isEmpty)
        _ = host.machine.unsubscribed("a", at: host.now)
        #expect(host.machine.subscribed("a", at: host.now).isEmpty)
    }

    @Test mutating func `an unknown subscriber is the only central there is, or nobody`() {
        host.connect("a", subscribed: false)
        _ = host.write(from: "a")
        _ = host.decide(1)
        host.connect("b", subscribed: false)
        #expect(host.machine.subscribed(nil, at: host.now).isEmpty)
        _ = host.disconnect("b")
        #expect(host.machine.subscribed(nil, at: host.now).notifications.count == 1)
    }

    @Test mutating func `an answer sent again waits for another's slot`() {
        host.connect("a", subscribed: false)
        _ = host.write(from: "a")
        _ = host.decide(1)
        host.connect("b")
        _ = host.write(from: "b")
        _ = host.decide(2)
        _ = host.fire(after: .seconds(1))
        #expect(host.machine.subscribed("a", at: host.now).isEmpty)
        #expect(
            host.disconnect("b") == [
                .report(.delivered(2, "b", Delivery(.disconnected, subscriptionSeen: true))),
                .notify(HostFixture.handoff, "a"), .report(.answeredAgain("a")),
            ])
    }

    @Test mutating func `who writes without ever subscribing is answered all the same`() {
        host.connect("a", subscribed: false)
        _ = host.write(from: "a")
        #expect(host.decide(1).notifications.count == 1)
        #expect(
            host.disconnect("a").events == [.delivered(1, "a", Delivery(.disconnected, subscriptionSeen: false))])
    }

    // MARK: Bounds

    @Test mutating func `a thousand joins one after another leave nothing behind`() {
        var most = 0
        for number in 1...1_000 {
            let peer = PeerID("p\(number)")
            host.connect(peer)
            #expect(host.write(from: peer).joins.count == 1)
            #expect(host.decide(JoinID(UInt64(number))).notifications.count == 1)
            most = max(most, host.machine.footprint)
            host.pass(.milliseconds(100))
            #expect(host.disconnect(peer).events.count == 1)
        }
        #expect(most == 1 && host.machine.footprint == 0)
    }

    @Test mutating func `a thousand centrals that never leave make room for each other`() {
        for number in 0..<1_000 { host.connect(PeerID("p\(number)")) }
        #expect(host.machine.footprint == ProtocolLimits.hostPeers)
        ask("a")
        for number in 0..<1_000 { host.connect(PeerID("q\(number)")) }
        // Who waits for an answer stays.
        #expect(host.decide(1).notifications.count == 1)
    }

    @Test mutating func `a thousand devices that write rubbish are bounded`() {
        for number in 0..<1_000 {
            let actions = host.write(Array("x".utf8), from: PeerID("p\(number)"))
            #expect(actions.contains(.acknowledge(RequestID(UInt64(number + 1)))))
        }
        #expect(host.machine.footprint <= ProtocolLimits.hostPeers + ProtocolLimits.queuedAnswers)
    }

    // MARK: Configuration

    @Test func `a configuration is checked before anything is on the air`() throws {
        let numbers = HostConfiguration(appId: "a", sessionId: "s", payload: ["n": 1, "s": "x", "z": nil])
        #expect(try numbers.check() == [.valueIsNotAString(key: "n"), .valueIsNotAString(key: "z")])
        let long = HostConfiguration(
            appId: "a", sessionId: "s", payload: ["k": .string(String(repeating: "x", count: 97))])
        #expect(try long.check() == [.longEnvelope(bytes: 182, comfortable: 180, needsMTU: 187)])
        let over = HostConfiguration(
            appId: "a", sessionId: "s", payload: ["k": .string(String(repeating: "x", count: 430))])
        #expect(throws: EnvelopeError.tooLarge(size: 515, limit: 512)) { try over.check() }
        #expect(throws: EnvelopeError.self) { try HostMachine(over) }
        #expect(throws: EnvelopeError.self) { try HostConfiguration(appId: "", sessionId: "s").check() }
    }
}
