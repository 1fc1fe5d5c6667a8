// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct HostMachineTests {
    var host: HostFixture

    init() throws {
        host = try HostFixture()
    }

    @Test mutating func `a whole handoff`() {
        host.connect("a")
        #expect(
            host.write(from: "a") == [
                .acknowledge(1), .report(.requested(1, "a")),
                .decide(JoinRequest(id: 1, peer: "a", appId: "app")),
            ])
        #expect(host.decide(1) == [.notify(HostFixture.handoff, "a"), .report(.handedOff(1, "a"))])
        host.pass(.milliseconds(300))
        #expect(
            host.disconnect("a") == [
                .report(.delivered(1, "a", Delivery(.disconnected, subscriptionSeen: true)))
            ])
        #expect(host.machine.footprint == 0 && host.machine.nextDeadline == nil)
    }

    @Test mutating func `a client that stays counts as served after five seconds`() {
        host.connect("a")
        _ = host.write(from: "a")
        _ = host.decide(1)
        #expect(host.machine.nextDeadline == host.now + .seconds(5))
        #expect(host.fire(after: .milliseconds(4_999)).isEmpty)
        #expect(
            host.fire(after: .milliseconds(1)) == [
                .report(.delivered(1, "a", Delivery(.waited, subscriptionSeen: true)))
            ])
        #expect(host.disconnect("a").isEmpty)
    }

    @Test mutating func `the write is answered whatever the app takes, and the app has ten seconds`() {
        host.connect("a")
        #expect(host.write(from: "a").first == .acknowledge(1))
        #expect(host.machine.nextDeadline == host.now + .seconds(10))
        let text = "The host did not decide in time."
        #expect(
            host.fire(after: .seconds(10)) == [
                .cancelDecision(1), .report(.failed(1, "a", .admissionTimedOut)),
                .notify(HostFixture.reject(.timeout, text), "a"),
                .report(.rejected(1, "a", .timeout, message: text)),
            ])
        #expect(host.decide(1).isEmpty)
    }

    @Test mutating func `the app's no is notified with its reason and text`() {
        host.connect("a")
        _ = host.write(from: "a")
        #expect(
            host.decide(1, .reject(.denied, message: "Full.")) == [
                .notify(HostFixture.reject(.denied, "Full."), "a"),
                .report(.rejected(1, "a", .denied, message: "Full.")),
            ])
    }

    @Test mutating func `a reason too long for the connection becomes denied`() {
        host.connect("a")
        _ = host.write(from: "a")
        let long = RejectReason(rawValue: String(repeating: "x", count: 200))
        let actions = host.decide(1, .reject(long))
        #expect(actions.first?.rejectReason == .denied)
    }

    @Test mutating func `a handoff that does not fit is never cut off`() {
        host.connect("a")
        _ = host.write(from: "a", mtu: 185)
        let payload: JSONObject = ["k": .string(String(repeating: "x", count: 94))]
        let actions = host.decide(1, .handoff(payload: payload))
        #expect(actions.events.first == .failed(1, "a", .handoffTooLarge(size: 181, limit: 180, mtu: 185)))
        #expect(actions.notifications.count == 1)
        #expect(actions.contains { $0.rejectReason == .tooLarge })
    }

    @Test mutating func `where not even a reject fits the write is refused and the app not asked`() {
        host.connect("a")
        let actions = host.write(from: "a", mtu: 23)
        #expect(actions.first == .refuse(1, .answerDoesNotFit))
        #expect(actions.joins.isEmpty && actions.notifications.isEmpty)
        guard case .failed(nil, "a", .rejectDoesNotFit(_, 18, 23)) = actions.events.only else {
            Issue.record("\(actions.events)")
            return
        }
    }

    @Test mutating func `an MTU that no one tells is 23, or what the configuration says`() throws {
        #expect(host.write(from: "a", mtu: nil).first == .refuse(1, .answerDoesNotFit))
        var other = try HostFixture(assumedMTU: 185)
        #expect(other.write(from: "a", mtu: nil).first == .acknowledge(1))
        // One told with the subscription holds for the write.
        _ = host.machine.subscribed("b", mtu: 185, at: host.now)
        #expect(host.write(from: "b", mtu: nil).joins.count == 1)
    }

    @Test mutating func `the MTU is read afresh with every write`() {
        host.connect("a")
        #expect(host.write(from: "a", mtu: 23).first == .refuse(1, .answerDoesNotFit))
        #expect(host.write(from: "a", mtu: 185).joins.count == 1)
    }

    @Test mutating func `the same request again joins the one that is being decided`() {
        host.connect("a")
        #expect(host.write(from: "a").joins.count == 1)
        #expect(host.write(from: "a") == [.acknowledge(2)])
        #expect(host.decide(1).notifications.count == 1)
    }

    @Test mutating func `another request replaces the one that is being decided`() {
        host.connect("a")
        _ = host.write(from: "a")
        let other = Envelope.joinRequest(appId: "app", sessionId: "mine").encoded()
        #expect(
            host.write(other, from: "a") == [
                .acknowledge(2), .cancelDecision(1), .report(.failed(1, "a", .replaced)),
                .report(.requested(2, "a")),
                .decide(JoinRequest(id: 2, peer: "a", appId: "app", sessionId: "mine")),
            ])
        #expect(host.decide(1).isEmpty)
        #expect(host.decide(2).notifications.count == 1)
    }

    @Test mutating func `a request after the answer is a new one and the old does not count`() {
        host.connect("a")
        _ = host.write(from: "a")
        _ = host.decide(1)
        let actions = host.write(from: "a")
        #expect(actions.events == [.failed(1, "a", .askedAgain), .requested(2, "a")])
        #expect(host.decide(2).events == [.handedOff(2, "a")])
        #expect(host.disconnect("a").events.count == 1)
    }

    @Test mutating func `the same bytes from two devices are two requests`() {
        host.connect("a", "b")
        #expect(host.write(from: "a").joins.only?.id == 1)
        #expect(host.write(from: "b").joins.only?.id == 2)
    }

    @Test mutating func `a client may vanish at each step`() {
        host.connect("a")
        #expect(host.disconnect("a").isEmpty)
        host.connect("b")
        _ = host.write(from: "b")
        #expect(host.disconnect("b") == [.cancelDecision(1), .report(.failed(1, "b", .disconnected))])
        host.connect("c", "d")
        _ = host.write(from: "c")
        _ = host.write(from: "d")
        _ = host.decide(2)
        #expect(host.decide(3).isEmpty)
        #expect(host.disconnect("d") == [.report(.failed(3, "d", .disconnected))])
        #expect(host.disconnect("c").events.count == 1)
        host.connect("e")
        _ = host.write(Array(longRequest.prefix(450)), from: "e")
        #expect(host.disconnect("e") == [.report(.failed(nil, "e", .disconnected))])
        #expect(host.machine.footprint == 0 && host.machine.nextDeadline == nil)
    }

    @Test mutating func `a client that subscribes and says nothing costs nothing`() {
        host.connect("a")
        #expect(host.machine.nextDeadline == nil)
        #expect(host.fire(after: .seconds(3_600)).isEmpty)
    }

    @Test mutating func `when the radio goes every peer goes with it, and the host serves on`() {
        host.connect("a", "b", "c")
        for peer: PeerID in ["a", "b", "c"] { _ = host.write(from: peer) }
        _ = host.decide(1)
        _ = host.decide(2)
        #expect(
            host.machine.radioReset(at: host.now) == [
                .cancelDecision(3), .report(.failed(3, "c", .radioReset)), .report(.failed(2, "b", .radioReset)),
                .report(.failed(1, "a", .radioReset)),
            ])
        #expect(host.machine.footprint == 0 && host.machine.nextDeadline == nil)
        host.connect("a")
        #expect(host.write(from: "a").joins.only?.id == 4)
    }

    @Test mutating func `when the host stops whoever waits is told`() {
        host.connect("a", "b")
        _ = host.write(from: "a")
        _ = host.write(from: "b")
        _ = host.decide(1)
        let actions = host.machine.stop(at: host.now)
        #expect(
            actions == [
                .cancelDecision(2), .report(.failed(2, "b", .stopped)), .report(.failed(1, "a", .stopped)),
                .notify(HostFixture.reject(.sessionEnded, "The session has ended."), "b"),
            ])
        #expect(host.machine.stop(at: host.now).isEmpty)
        let late = host.write(from: "c")
        #expect(late.first == .acknowledge(3) && late.joins.isEmpty)
        #expect(late.contains { $0.rejectReason == .sessionEnded })
    }

    // MARK: Long writes

    private var longRequest: [UInt8] {
        Envelope.joinRequest(appId: "app", payload: ["k": .string(String(repeating: "x", count: 436))]).encoded()
    }

    @Test mutating func `the rest of a long write is taken at its offset`() {
        host.connect("a")
        #expect(longRequest.count == 512)
        #expect(host.write(Array(longRequest[..<504]), from: "a") == [.acknowledge(1)])
        #expect(host.machine.nextDeadline == host.now + .seconds(5))
        let actions = host.write(Array(longRequest[504...]), from: "a", offset: 504)
        #expect(actions.first == .acknowledge(2) && actions.joins.count == 1)
        #expect(host.machine.nextDeadline == host.now + .seconds(10))
    }

    @Test mutating func `a rest elsewhere, or without a start, is refused`() {
        host.connect("a", "b")
        _ = host.write(Array(longRequest[..<504]), from: "a")
        let rest = Array(longRequest[504...])
        #expect(
            host.write(rest, from: "a", offset: 500) == [
                .refuse(2, .invalidOffset), .report(.failed(nil, "a", .offsetWithoutStart(offset: 500))),
            ])
        #expect(host.write(rest, from: "b", offset: 504).first == .refuse(3, .invalidOffset))
        #expect(host.write(rest, from: "a", offset: 504).joins.count == 1)
    }

    @Test mutating func `a rest that never comes ends in malformed`() {
        host.connect("a")
        _ = host.write(Array(longRequest[..<504]), from: "a")
        let actions = host.fire(after: .seconds(5))
        #expect(actions.events.first == .failed(nil, "a", .remainderTimedOut))
        #expect(actions.contains { $0.rejectReason == .malformed })
        #expect(host.write(Array(longRequest[504...]), from: "a", offset: 504).first == .refuse(2, .invalidOffset))
    }

    @Test mutating func `a rest past 512 bytes is too large, and a new start forgets the old`() {
        host.connect("a")
        _ = host.write(Array(longRequest[..<504]), from: "a")
        let actions = host.write([UInt8](repeating: 0x78, count: 9), from: "a", offset: 504)
        #expect(actions.first == .acknowledge(2))
        #expect(actions.contains { $0.rejectReason == .tooLarge })
        host.connect("b")
        _ = host.write(Array(longRequest[..<504]), from: "b")
        _ = host.write(from: "b")
        #expect(host.write(Array(longRequest[504...]), from: "b", offset: 504).first == .refuse(5, .invalidOffset))
    }
}
