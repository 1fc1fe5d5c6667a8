// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct ExchangeTests {
    var client: ClientFixture

    init() throws {
        client = try ClientFixture()
        _ = client.begin()
    }

    private mutating func await(instances: [Int] = [1]) {
        _ = client.see("a")
        client.bring(1, to: .awaitingAnswer, instances: instances)
    }

    @Test mutating func `a whole exchange, with the time of each phase`() {
        client.now += .milliseconds(100)
        #expect(
            client.see("a") == [
                .report(.candidate(Candidate(peer: "a", rssi: -50, isNear: true))), .stopScan,
                .connect(1, "a", timeout: .seconds(10)), .report(.phase(1, "a", .connecting)),
            ])
        client.now += .milliseconds(100)
        #expect(client.tell(1, .connected) == [.discover(1), .report(.phase(1, "a", .discovering))])
        client.now += .milliseconds(100)
        #expect(
            client.tell(1, .discovered(instances: [7])) == [
                .subscribe(1, instance: 7), .report(.phase(1, "a", .subscribing)),
            ])
        client.now += .milliseconds(100)
        #expect(
            client.tell(1, .subscribed) == [
                .write(1, instance: 7, ClientFixture.request), .report(.phase(1, "a", .writing)),
            ])
        client.now += .milliseconds(100)
        #expect(client.tell(1, .written) == [.report(.phase(1, "a", .awaitingAnswer))])
        client.now += .milliseconds(100)
        var timing = HandoffTiming()
        timing.seen = .milliseconds(100)
        timing.connected = .milliseconds(200)
        timing.resolved = .milliseconds(300)
        timing.subscribed = .milliseconds(400)
        timing.written = .milliseconds(500)
        timing.answered = .milliseconds(600)
        #expect(
            client.notify(1, ClientFixture.handoff.encoded()) == [
                .finish(.handoff(ClientFixture.handoff, .plaintext, from: "a", timing)), .disconnect(1),
            ])
        #expect(client.machine.nextDeadline == nil)
    }

    @Test mutating func `a second answer is ignored`() {
        self.await()
        #expect(client.notify(1, ClientFixture.handoff.encoded()).handoff != nil)
        #expect(client.notify(1, ClientFixture.handoff.encoded()).isEmpty)
        #expect(client.notify(1, ClientFixture.reject(.denied)).isEmpty)
        #expect(client.fire(after: .seconds(60)).isEmpty)
    }

    @Test mutating func `an answer may overtake the write's acknowledgement`() {
        _ = client.see("a")
        client.bring(1, to: .writing)
        #expect(client.notify(1, ClientFixture.handoff.encoded()).handoff == ClientFixture.handoff)
    }

    @Test(arguments: [ExchangePhase.discovering, .subscribing])
    mutating func `what is notified before our request went out is somebody else's`(_ phase: ExchangePhase) {
        _ = client.see("a")
        client.bring(1, to: phase)
        #expect(client.notify(1, ClientFixture.handoff.encoded()).isEmpty)
        #expect(client.notify(1, ClientFixture.reject(.denied)).isEmpty)
        #expect(client.notify(1, Array("{\"type\"".utf8)).isEmpty)
        if phase == .discovering { _ = client.tell(1, .discovered(instances: [1])) }
        _ = client.tell(1, .subscribed)
        #expect(client.notify(1, ClientFixture.handoff.encoded()).handoff != nil)
    }

    @Test mutating func `an answer split without headers is put together`() {
        self.await()
        let bytes = ClientFixture.handoff.encoded()
        for part in stride(from: 0, to: bytes.count - 20, by: 20) {
            #expect(client.notify(1, Array(bytes[part..<part + 20])).isEmpty)
        }
        let rest = bytes.count - bytes.count % 20 - (bytes.count.isMultiple(of: 20) ? 20 : 0)
        #expect(client.notify(1, Array(bytes[rest...])).handoff == ClientFixture.handoff)
    }

    @Test mutating func `an answer cut off ends the search after five seconds if it names our app`() {
        self.await()
        #expect(client.notify(1, Array(ClientFixture.handoff.encoded().prefix(60))).isEmpty)
        #expect(client.machine.nextDeadline == client.now + .seconds(5))
        let actions = client.fire(after: .seconds(5))
        #expect(actions.failure?.code == .truncatedAnswer(bytes: 60))
        #expect(actions.contains(.disconnect(1)))
    }

    @Test mutating func `one cut off before it names an app leaves the device out and goes on`() {
        self.await()
        _ = client.notify(1, Array(ClientFixture.handoff.encoded().prefix(20)))
        let actions = client.fire(after: .seconds(5))
        #expect(actions.result == nil)
        #expect(
            actions == [
                .disconnect(1),
                .report(.attemptFailed(1, "a", .truncatedAnswer(bytes: 20), willRetry: false)), .startScan,
            ])
        #expect(client.runOut().failure?.code == .exchangeFailed(.truncatedAnswer(bytes: 20)))
    }

    @Test mutating func `a disconnect in the middle of an answer is an answer cut off`() {
        self.await()
        _ = client.notify(1, Array(ClientFixture.handoff.encoded().prefix(60)))
        #expect(
            client.tell(1, .disconnected(LinkFailure(.disconnected))).failure?.code == .truncatedAnswer(bytes: 60))
    }

    @Test mutating func `a handoff for another app is ignored`() {
        self.await()
        let other = Envelope.handoff(appId: "other", sessionId: "s", payload: [:]).encoded()
        #expect(client.notify(1, other).isEmpty)
        #expect(client.notify(1, ClientFixture.handoff.encoded()).handoff != nil)
    }

    @Test mutating func `a reject for our app ends the search with its reason`() {
        self.await()
        let actions = client.notify(1, ClientFixture.reject(.denied))
        #expect(actions.failure?.code == .rejected(ClientFixture.rejection(.denied)))
        #expect(actions.failure?.counts == Encounters(seen: 1, failed: 1))
        #expect(actions.commands.contains(.disconnect(1)))
    }

    @Test mutating func `an unknown reason is kept`() {
        self.await()
        let reason = RejectReason(rawValue: "out_of_cake")
        #expect(
            client.notify(1, ClientFixture.reject(reason)).failure?.code == .rejected(ClientFixture.rejection(reason)))
    }

    @Test mutating func `another app's reject is held for a second, and a better answer wins`() {
        self.await()
        #expect(client.notify(1, ClientFixture.reject(.denied, appId: "other")).isEmpty)
        #expect(client.machine.nextDeadline == client.now + .seconds(1))
        client.now += .milliseconds(999)
        #expect(client.notify(1, ClientFixture.handoff.encoded()).handoff != nil)
    }

    @Test mutating func `another app's reject is taken after a second`() {
        self.await()
        _ = client.notify(1, Array("hello".utf8))
        client.now += .milliseconds(200)
        // It counts for more than rubbish; but what follows does not buy more time, nor does it count for more.
        _ = client.notify(1, ClientFixture.reject(.denied, appId: "other"))
        client.now += .milliseconds(300)
        _ = client.notify(1, ClientFixture.reject(.busy, appId: "-"))
        #expect(client.fire(after: .milliseconds(500)).failure?.code == .rejected(ClientFixture.rejection(.denied)))
    }

    @Test mutating func `a held reject is taken when the host disconnects`() {
        self.await()
        _ = client.notify(1, ClientFixture.reject(.denied, appId: "other"))
        let actions = client.tell(1, .disconnected(LinkFailure(.disconnected)))
        #expect(actions.failure?.code == .rejected(ClientFixture.rejection(.denied)))
        #expect(!actions.contains(.disconnect(1)))
    }

    @Test mutating func `an ATT error on the write is a rejection with its code`() {
        _ = client.see("a")
        client.bring(1, to: .writing)
        #expect(client.tell(1, .writeRefused(0x80)).isEmpty)
        #expect(client.fire(after: .seconds(1)).failure?.code == .rejected(Rejection(attError: 0x80)))
    }

    @Test mutating func `a notification may still decide after an ATT error`() {
        _ = client.see("a")
        client.bring(1, to: .writing)
        _ = client.tell(1, .writeRefused(0x80))
        _ = client.notify(1, ClientFixture.reject(.malformed, appId: "-"))
        #expect(client.notify(1, ClientFixture.handoff.encoded()).handoff != nil)
    }

    @Test mutating func `an answer that is no message leaves the device out`() {
        self.await()
        #expect(client.notify(1, Array("hello".utf8)).isEmpty)
        let actions = client.fire(after: .seconds(1))
        guard case .report(.attemptFailed(1, "a", .malformedAnswer, willRetry: false))? = actions.dropFirst().first
        else {
            Issue.record("\(actions)")
            return
        }
    }

    @Test mutating func `a host that never answers is given up after twenty seconds`() {
        self.await()
        let actions = client.fire(after: .seconds(20))
        #expect(actions.contains(.report(.attemptFailed(1, "a", .noAnswer, willRetry: true))))
        #expect(actions.contains(.disconnect(1)))
    }

    @Test mutating func `the device's instances are tried in turn`() {
        self.await(instances: [3, 4])
        #expect(
            client.notify(1, ClientFixture.reject(.appMismatch)) == [
                .subscribe(1, instance: 4), .report(.phase(1, "a", .subscribing)),
            ])
        #expect(client.tell(1, .subscribed).commands == [.write(1, instance: 4, ClientFixture.request)])
        _ = client.tell(1, .written)
        // The first instance says it again: not the second's answer.
        #expect(client.tell(1, .notified(ClientFixture.reject(.denied), instance: 3)).isEmpty)
        #expect(client.tell(1, .notified(ClientFixture.handoff.encoded(), instance: 4)).handoff != nil)
    }

    @Test mutating func `a host that echoes its own appId in app_mismatch is another app's too`() {
        self.await(instances: [3, 4])
        _ = client.notify(1, ClientFixture.reject(.appMismatch, appId: "theirs"))
        #expect(client.fire(after: .seconds(1)).commands == [.subscribe(1, instance: 4)])
    }

    @Test mutating func `at most eight instances are tried`() {
        self.await(instances: Array(0..<100))
        for _ in 1..<8 {
            #expect(client.notify(1, ClientFixture.reject(.appMismatch)).commands.count == 1)
            _ = client.tell(1, .subscribed)
        }
        #expect(
            client.notify(1, ClientFixture.reject(.appMismatch)).contains(
                .report(.attemptFailed(1, "a", .otherApp, willRetry: false))))
    }

    @Test mutating func `inputs that do not belong to the phase or the attempt are ignored`() {
        _ = client.see("a")
        for input: ExchangeInput in [.subscribed, .written, .discovered(instances: [1]), .notified([])] {
            #expect(client.tell(1, input).isEmpty)
        }
        #expect(client.tell(9, .connected).isEmpty)
        #expect(client.tell(1, .connected).commands == [.discover(1)])
        #expect(client.tell(1, .connected).isEmpty)
    }
}
