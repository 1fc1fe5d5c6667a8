// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct ClientMachineTests {
    private let lost = LinkFailure(.disconnected, "gone")

    @Test func `nothing found ends at the deadline`() throws {
        var client = try ClientFixture()
        #expect(client.begin() == [.startScan])
        #expect(client.begin().isEmpty)
        #expect(client.machine.nextDeadline == client.start + .seconds(30))
        #expect(client.fire(after: .milliseconds(29_999)).isEmpty)
        #expect(
            client.fire(after: .milliseconds(1)) == [
                .finish(.failure(ClientFailure(.nothingFound, counts: Encounters()))), .stopScan,
            ])
        #expect(client.see("a").isEmpty && client.machine.nextDeadline == nil)
    }

    @Test func `a device too far is not tried, and one that comes near is`() throws {
        var client = try ClientFixture(minimumRSSI: -60)
        _ = client.begin()
        #expect(client.see("a", -80).connects.isEmpty)
        #expect(client.see("b", 127).connects.isEmpty)
        #expect(client.see("a", -50).connects.isEmpty)
        #expect(client.see("a", -50).connects == ["a"])
    }

    @Test func `only far devices end in too far`() throws {
        var client = try ClientFixture(minimumRSSI: -60)
        _ = client.begin()
        _ = client.see("a", -80)
        _ = client.see("b", 127)
        #expect(
            client.runOut().failure == ClientFailure(.tooFar, counts: Encounters(seen: 2, tooFar: 2)))
    }

    @Test func `the strongest within the window is tried`() throws {
        var client = try ClientFixture(minimumRSSI: -90, selection: .strongest(within: .seconds(2)))
        _ = client.begin()
        client.now += .seconds(5)
        #expect(client.see("far", -95).connects.isEmpty)
        client.now += .seconds(1)
        #expect(client.see("a", -70).connects.isEmpty)
        #expect(client.machine.nextDeadline == client.now + .seconds(2))
        #expect(client.see("b", -40).connects.isEmpty)
        #expect(client.see("c", -60).connects.isEmpty)
        #expect(client.fire(after: .milliseconds(1_999)).connects.isEmpty)
        #expect(client.fire(after: .milliseconds(1)).connects == ["b"])
        // The next best is next.
        let next = client.tell(1, .connectFailed(lost))
        #expect(next.connects == ["c"])
    }

    @Test func `without readings the first of the window is tried`() throws {
        var client = try ClientFixture(selection: .strongest(within: .seconds(1)))
        _ = client.begin()
        _ = client.see("a", 127)
        _ = client.see("b", nil)
        #expect(client.fire(after: .seconds(1)).connects == ["a"])
    }

    @Test func `by hand only the app's pick is tried, once it is near`() throws {
        var client = try ClientFixture(minimumRSSI: -60, selection: .manual)
        _ = client.begin()
        #expect(
            client.see("a", -50) == [.report(.candidate(Candidate(peer: "a", rssi: -50, isNear: true)))])
        _ = client.see("b", -80)
        #expect(client.machine.chosen("b", at: client.now).isEmpty)
        #expect(client.machine.chosen("a", at: client.now).connects == ["a"])
        // A newer pick; the older one's retry is off.
        #expect(client.machine.chosen("b", at: client.now).isEmpty)
        #expect(client.tell(1, .connectFailed(lost)).connects.isEmpty)
        #expect(client.fire(after: .seconds(1)).connects.isEmpty)
        #expect(client.machine.chosen("a", at: client.now).connects == ["a"])
    }

    @Test func `by hand a pick that failed for good leaves the app to pick again`() throws {
        var client = try ClientFixture(selection: .manual)
        _ = client.begin()
        _ = client.see("a")
        _ = client.see("b")
        _ = client.machine.chosen("a", at: client.now)
        client.bring(1, to: .awaitingAnswer)
        #expect(client.notify(1, ClientFixture.reject(.appMismatch)).connects.isEmpty)
        #expect(client.machine.chosen("b", at: client.now).connects == ["b"])
    }

    @Test func `nothing picked ends in nothing chosen`() throws {
        var client = try ClientFixture(selection: .manual)
        _ = client.begin()
        _ = client.see("a")
        #expect(client.runOut().failure?.code == .nothingChosen)
    }

    @Test func `a failed link is tried three times with growing pauses, first without the scan`() throws {
        var client = try ClientFixture()
        _ = client.begin()
        #expect(client.see("a").commands == [.stopScan, .connect(1, "a", timeout: .seconds(10))])
        let first = client.tell(1, .connectFailed(lost))
        #expect(
            first == [
                .report(.attemptFailed(1, "a", .link(lost, during: .connecting), willRetry: true)), .startScan,
            ])
        #expect(client.see("a").connects.isEmpty)
        #expect(client.machine.nextDeadline == client.now + .milliseconds(500))
        #expect(client.fire(after: .milliseconds(500)).commands == [.connect(2, "a", timeout: .seconds(10))])
        _ = client.tell(2, .connected)
        let second = client.tell(2, .discoveryFailed(lost))
        #expect(second.first == .disconnect(2))
        #expect(client.machine.nextDeadline == client.now + .seconds(1))
        #expect(client.fire(after: .seconds(1)).connects == ["a"])
        #expect(
            client.tell(3, .disconnected(lost)).contains(
                .report(.attemptFailed(3, "a", .link(lost, during: .connecting), willRetry: false))))
        #expect(client.see("a").connects.isEmpty)
        #expect(
            client.runOut().failure
                == ClientFailure(
                    .exchangeFailed(.link(lost, during: .connecting)), counts: Encounters(seen: 1, failed: 1)))
    }

    @Test func `other devices are tried in the pause`() throws {
        var client = try ClientFixture()
        _ = client.begin()
        _ = client.see("a")
        _ = client.see("b")
        #expect(client.tell(1, .connectFailed(lost)).commands == [.connect(2, "b", timeout: .seconds(10))])
        _ = client.tell(2, .connectFailed(lost))
        #expect(client.fire(after: .milliseconds(500)).connects == ["a"])
    }

    @Test func `a device that was only in the cache must be seen again`() throws {
        var client = try ClientFixture()
        _ = client.begin()
        _ = client.see("a")
        _ = client.tell(1, .connectFailed(LinkFailure(.gone)))
        #expect(client.fire(after: .seconds(5)).connects.isEmpty)
        #expect(client.see("a").connects == ["a"])
    }

    @Test func `the wrong host is left out and the right one found`() throws {
        var client = try ClientFixture()
        _ = client.begin()
        _ = client.see("wrong")
        client.bring(1, to: .awaitingAnswer)
        #expect(
            client.notify(1, ClientFixture.reject(.appMismatch)) == [
                .disconnect(1), .report(.attemptFailed(1, "wrong", .otherApp, willRetry: false)), .startScan,
            ])
        #expect(client.see("wrong").connects.isEmpty)
        #expect(client.see("right").connects == ["right"])
        client.bring(2, to: .awaitingAnswer)
        #expect(client.notify(2, ClientFixture.handoff.encoded()).handoff != nil)
    }

    @Test func `the final error counts what was met`() throws {
        var client = try ClientFixture(minimumRSSI: -60)
        _ = client.begin()
        _ = client.see("far", -90)
        _ = client.see("other")
        client.bring(1, to: .awaitingAnswer)
        _ = client.notify(1, ClientFixture.reject(.appMismatch))
        let counts = Encounters(seen: 2, tooFar: 1, otherApp: 1)
        var copy = client
        #expect(copy.runOut().failure == ClientFailure(.otherApp, counts: counts))
        _ = client.see("bad")
        _ = client.tell(2, .connected)
        _ = client.tell(2, .discovered(instances: []))
        _ = client.machine.gone("bad", at: client.now)
        #expect(
            client.runOut().failure
                == ClientFailure(
                    .exchangeFailed(.noService), counts: Encounters(seen: 3, tooFar: 1, otherApp: 1, failed: 1)))
    }

    @Test(arguments: [
        (ExchangePhase.connecting, Duration.seconds(10)), (.discovering, .seconds(10)), (.subscribing, .seconds(10)),
        (.writing, .seconds(10)),
    ])
    func `each phase has its own limit`(_ phase: ExchangePhase, _ limit: Duration) throws {
        var client = try ClientFixture()
        _ = client.begin()
        _ = client.see("a")
        client.bring(1, to: phase)
        #expect(client.machine.nextDeadline == client.now + limit)
        let actions = client.fire(after: limit)
        #expect(actions.first == .disconnect(1))
        guard
            case .report(.attemptFailed(1, "a", .link(let link, during: phase), willRetry: true))? = actions.dropFirst()
                .first
        else {
            Issue.record("\(actions)")
            return
        }
        #expect(link.kind == .timedOut)
    }

    @Test func `the deadline ends an exchange in whatever phase it is`() throws {
        var client = try ClientFixture(deadline: .seconds(5))
        _ = client.begin()
        client.now += .seconds(1)
        #expect(client.see("a").commands.contains(.connect(1, "a", timeout: .seconds(4))))
        client.bring(1, to: .awaitingAnswer)
        let actions = client.fire(after: .seconds(4))
        #expect(actions.failure?.code == .timedOut(during: .awaitingAnswer))
        #expect(actions.commands.contains(.disconnect(1)))
    }

    @Test func `a cancelled search ends at once and leaves nothing behind`() throws {
        var client = try ClientFixture()
        _ = client.begin()
        var other = client
        #expect(
            client.machine.cancelled(at: client.now) == [
                .finish(.failure(ClientFailure(.cancelled, counts: Encounters()))), .stopScan,
            ])
        #expect(client.machine.cancelled(at: client.now).isEmpty)
        _ = other.see("a")
        #expect(
            other.machine.cancelled(at: other.now).commands == [
                .finish(.failure(ClientFailure(.cancelled, counts: Encounters(seen: 1)))), .disconnect(1),
            ])
    }

    @Test func `the radio may go and come back at each step`() throws {
        let off = RadioUnavailability(.poweredOff)
        for phase in [ExchangePhase.connecting, .discovering, .subscribing, .writing, .awaitingAnswer] {
            var client = try ClientFixture()
            _ = client.begin()
            _ = client.see("a")
            client.bring(1, to: phase)
            #expect(
                client.machine.radioUnavailable(off, at: client.now) == [
                    .report(.radioUnavailable(off)), .report(.attemptFailed(1, "a", .radioLost, willRetry: true)),
                ])
            #expect(client.tell(1, .disconnected(lost)).isEmpty)
            #expect(client.machine.radioUnavailable(off, at: client.now).isEmpty)
            #expect(client.machine.radioAvailable(at: client.now) == [.report(.radioAvailable), .startScan])
            #expect(client.see("a").commands == [.stopScan, .connect(2, "a", timeout: .seconds(10))])
        }
    }

    @Test func `a device lost with the radio is the radio's failure, not a missing choice`() throws {
        var client = try ClientFixture()
        _ = client.begin()
        _ = client.see("a")
        _ = client.machine.radioUnavailable(RadioUnavailability(.resetting), at: client.now)
        _ = client.machine.radioAvailable(at: client.now)
        #expect(
            client.runOut().failure == ClientFailure(.exchangeFailed(.radioLost), counts: Encounters(seen: 1)))
    }

    @Test func `a radio that is not there at the start may come later`() throws {
        var client = try ClientFixture()
        let absent = RadioUnavailability(.absent)
        _ = client.machine.radioUnavailable(absent, at: client.now)
        #expect(client.begin().isEmpty)
        client.now += .seconds(10)
        #expect(client.machine.radioAvailable(at: client.now).commands == [.startScan])
    }

    @Test func `a radio that never comes is the error`() throws {
        var client = try ClientFixture()
        _ = client.begin()
        let absent = RadioUnavailability(.absent)
        _ = client.machine.radioUnavailable(absent, at: client.now)
        let actions = client.runOut()
        #expect(actions.failure?.code == .radioUnavailable(absent))
        #expect(!actions.contains(.stopScan))
    }

    @Test func `a device that is gone is not tried until it is back`() throws {
        var client = try ClientFixture(selection: .strongest(within: .seconds(1)))
        _ = client.begin()
        _ = client.see("a")
        #expect(client.machine.gone("a", at: client.now) == [.report(.candidateGone("a"))])
        #expect(client.machine.gone("a", at: client.now).isEmpty)
        #expect(client.fire(after: .seconds(2)).connects.isEmpty)
        #expect(client.see("a").connects == ["a"])
    }

    @Test func `a thousand devices are counted and 256 remembered`() throws {
        var client = try ClientFixture(minimumRSSI: -60)
        _ = client.begin()
        for number in 0..<1_000 { _ = client.see(PeerID("p\(number)"), -90) }
        #expect(client.machine.footprint == ProtocolLimits.devicesSeen)
        #expect(client.runOut().failure?.counts == Encounters(seen: 1_000, tooFar: 1_000))
    }

    @Test func `a request that no host could take is refused at the start`() throws {
        let payload: JSONObject = ["k": .string(String(repeating: "x", count: 500))]
        let basic = try ClientProfiles(.basic)
        #expect(throws: EnvelopeError.self) {
            try ClientMachine(ClientConfiguration(appId: "a", payload: payload, profiles: basic))
        }
        let huge: JSONObject = ["k": .string(String(repeating: "x", count: 65_536))]
        #expect(throws: EnvelopeError.self) { try ClientMachine(ClientConfiguration(appId: "a", payload: huge)) }
        #expect(throws: EnvelopeError.self) {
            try ClientMachine(ClientConfiguration(appId: "a", payload: ["ndk.requestId": "mine"]))
        }
        #expect(throws: EnvelopeError.self) { try ClientMachine(ClientConfiguration(appId: "")) }
        let exact: JSONObject = ["k": .string(String(repeating: "x", count: 434))]
        #expect((try? ClientConfiguration(appId: "a", payload: exact).request().count) == 508)
    }
}
