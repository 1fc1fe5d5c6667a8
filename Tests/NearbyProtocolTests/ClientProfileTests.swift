// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

/// A whole search at one host that knows both profiles, or what a test leaves of them.
private struct Search {
    static let both = ServiceInstance(id: 1, hasMessage: true, hasHello: true)
    static let basicOnly = ServiceInstance(id: 1, hasMessage: true, hasHello: false)

    var client: ClientMachine
    var host: ExtendedHostFixture
    var instances = [both]
    /// What the app says; nil: nothing.
    var decision: AdmissionDecision? = .handoff()
    /// What the client is told of its writes, in place of the host: the link's end, say.
    var writeResult: ((_ frame: [UInt8]) -> ExtendedExchangeInput?)?
    /// Nothing that the host notifies arrives.
    var isDeaf = false
    private(set) var actions: [ClientAction] = []
    private(set) var hostActions: [ExtendedHostAction] = []

    init(
        choice: ProfileChoice = .auto, passcode: String? = nil, hostPasscode: String? = nil,
        payload: JSONObject? = nil, selection: HostSelection = .first
    ) throws {
        let profiles = try ClientProfiles(choice, passcode: passcode.map { try Passcode($0) })
        client = try ClientMachine(
            ClientConfiguration(
                appId: ExtendedHostFixture.appId, payload: payload, selection: selection, profiles: profiles))
        host = try ExtendedHostFixture(passcode: hostPasscode)
        host.connect("client")
        _ = client.started(at: host.now)
    }

    var result: ClientResult? { actions.result }
    var failure: ClientFailure? { actions.failure }
    var writes: Int { actions.count { if case .writeToChannel = $0 { true } else { false } } }
    var basicWrites: Int { actions.count { if case .write = $0 { true } else { false } } }
    var decided: Int { hostActions.joins.count }

    mutating func see(_ peer: PeerID = "host") {
        follow(client.sighted(peer, rssi: -50, at: host.now))
    }

    mutating func fire(after duration: Duration) {
        host.now += duration
        follow(client.timerFired(at: host.now))
    }

    /// Runs to the end, the device being seen whenever the timer fires.
    mutating func runOut(_ peer: PeerID = "host") {
        var rounds = 0
        while result == nil, let deadline = client.nextDeadline, rounds < 1_000 {
            host.now = max(host.now, deadline)
            follow(client.timerFired(at: host.now))
            see(peer)
            rounds += 1
        }
    }

    mutating func tell(_ attempt: AttemptID, _ input: ExtendedExchangeInput) {
        follow(client.exchange(input, attempt, at: host.now))
    }

    private mutating func follow(_ next: [ClientAction]) {
        actions += next
        for action in next {
            switch action {
            case .connect(let attempt, _, _): tell(attempt, .connected)
            case .discover(let attempt): tell(attempt, .discovered(instances))
            case .readHello(let attempt, _): tell(attempt, .helloRead(host.hello("client") ?? []))
            case .subscribe(let attempt, _), .subscribeToChannel(let attempt, _):
                tell(attempt, .subscribed(mtu: 185))
            case .write(let attempt, _, _):
                tell(attempt, .written)
                tell(attempt, .notified(ExtendedHostFixture.handoff.encoded()))
            case .writeToChannel(let attempt, _, let frame):
                if let result = writeResult?(frame) {
                    tell(attempt, result)
                } else {
                    let actions = host.write(frame, from: "client")
                    tell(attempt, actions.refusals.first.map { .writeRefused($0) } ?? .written)
                    deliver(actions, to: attempt)
                }
            default: break
            }
        }
    }

    private mutating func deliver(_ actions: [ExtendedHostAction], to attempt: AttemptID) {
        let (frames, all) = host.pump(actions)
        hostActions += all
        for (_, bytes) in frames where !isDeaf { tell(attempt, .notified(bytes, instance: 1)) }
        for join in all.joins {
            if let decision { deliver(host.decide(join, decision), to: attempt) }
        }
    }
}

@Suite struct ClientProfileTests {
    private let lost = LinkFailure(.disconnected, "gone")

    private func security(of result: ClientResult?) -> MessageSecurity? {
        if case .handoff(_, let security, _, _)? = result { security } else { nil }
    }

    @Test func `two of ours use the extended profile`() throws {
        var search = try Search()
        search.see()
        #expect(security(of: search.result) == .sealed)
        #expect(search.actions.handoff == ExtendedHostFixture.handoff)
        #expect(search.basicWrites == 0)
        #expect(search.hostActions.events.contains { if case .delivered = $0 { true } else { false } })
    }

    @Test func `a basic host gets the basic profile, over the same link`() throws {
        var search = try Search()
        search.instances = [Search.basicOnly]
        search.see()
        #expect(security(of: search.result) == .plaintext)
        #expect(search.actions.connects.count == 1)
        #expect(search.writes == 0)
    }

    @Test func `a passcode on both sides authenticates`() throws {
        var search = try Search(passcode: "482913", hostPasscode: "482913")
        search.see()
        #expect(security(of: search.result) == .authenticated)
    }

    @Test(arguments: [Search.basicOnly, Search.both])
    fileprivate func `a client with a passcode writes nothing to a host without`(_ instance: ServiceInstance) throws {
        var search = try Search(passcode: "482913")
        search.instances = [instance]
        search.see()
        #expect(search.result == nil)
        search.runOut()
        let reason: SecurityRequired = instance.hasHello ? .hostAsksForNoPasscode : .hostHasNoExtended
        #expect(search.failure?.code == .securityRequired(reason))
        #expect(search.writes == 0 && search.basicWrites == 0)
    }

    @Test func `a host that wants a passcode ends the search 2 s later, nothing written`() throws {
        var search = try Search(hostPasscode: "482913")
        search.see()
        #expect(search.result == nil)
        #expect(search.client.nextDeadline == search.host.now + .seconds(2))
        search.fire(after: .seconds(2))
        #expect(search.failure?.code == .securityRequired(.passcodeNeeded))
        #expect(search.writes == 0 && search.basicWrites == 0)
    }

    @Test func `an open host beside one that wants a passcode is found`() throws {
        var search = try Search(hostPasscode: "482913")
        search.see()
        search.host = try ExtendedHostFixture()
        search.host.connect("client")
        search.see("other")
        #expect(security(of: search.result) == .sealed)
    }

    @Test func `where the app picks, the host that it picked says at once what it wants`() throws {
        var search = try Search(hostPasscode: "482913", selection: .manual)
        search.see()
        let chosen = search.client.chosen("host", at: search.host.now)
        #expect(chosen.connects == ["host"])
        for input in [ExtendedExchangeInput.connected, .discovered([Search.both])] { search.tell(1, input) }
        #expect(search.failure?.code == .securityRequired(.passcodeNeeded))
    }

    @Test func `a wrong passcode ends the search at the first host`() throws {
        var search = try Search(passcode: "111111", hostPasscode: "482913")
        search.see()
        search.fire(after: .seconds(1))
        guard case .unauthorized(let rejection)? = search.failure?.code else {
            Issue.record("\(String(describing: search.result))")
            return
        }
        #expect(rejection.security == .plaintext)
        #expect(search.decided == 0)
    }

    @Test func `a request that is asked again is the same, and the app is asked once`() throws {
        var search = try Search()
        search.isDeaf = true
        search.see()
        #expect(search.result == nil && search.decided == 1)
        search.tell(1, .disconnected(lost))
        _ = search.host.machine.centralDisconnected("client", at: search.host.now)
        search.host.connect("client")
        search.isDeaf = false
        search.fire(after: .milliseconds(500))
        #expect(search.actions.handoff == ExtendedHostFixture.handoff)
        #expect(search.decided == 1)
        #expect(search.hostActions.events.contains { if case .joined = $0 { true } else { false } })
    }

    @Test func `after an answer that did not come, the next attempt asks for the smallest notifications`() throws {
        var search = try Search()
        search.isDeaf = true
        search.see()
        search.fire(after: .seconds(20))
        search.isDeaf = false
        search.host.connect("client")
        var sizes: [Int] = []
        search.writeResult = { frame in
            // The message 0's second field, behind the frame's header and the sid.
            if frame.count > 22 { sizes.append(Int(frame[20]) << 8 | Int(frame[21])) }
            return nil
        }
        search.fire(after: .milliseconds(500))
        #expect(search.actions.handoff == ExtendedHostFixture.handoff)
        #expect(sizes.first == 20)
    }

    @Test func `a passcode is put to five hosts in one search, whatever fails`() throws {
        var search = try Search(passcode: "482913", hostPasscode: "482913")
        let lost = LinkFailure(.disconnected, "gone")
        search.writeResult = { _ in .disconnected(lost) }
        for number in 0..<8 where search.result == nil {
            search.see(PeerID("host \(number)"))
            search.fire(after: .milliseconds(1))
        }
        #expect(search.writes == 5)
        #expect(search.failure?.code == .exchangeFailed(.passcodeExposed))
    }

    @Test func `a request too large for the basic profile goes to extended hosts only`() throws {
        let payload: JSONObject = ["k": .string(String(repeating: "x", count: 600))]
        var search = try Search(payload: payload)
        search.instances = [Search.basicOnly]
        search.see()
        #expect(search.basicWrites == 0)
        search.instances = [Search.both]
        search.see("other")
        #expect(security(of: search.result) == .sealed)
    }

    @Test func `the deadline while the receipt is written does not take the handoff away`() throws {
        var search = try Search()
        search.decision = nil
        search.host.now += .seconds(25)
        search.host.connect("client")
        search.see()
        #expect(search.decided == 1)
        let request = search.writes
        // The receipt's write stays unanswered.
        search.writeResult = { _ in .notified([], instance: 1) }
        let join = try #require(search.hostActions.joins.only)
        search.host.now += .seconds(4)
        for (_, bytes) in search.host.pump(search.host.decide(join)).frames {
            search.tell(1, .notified(bytes, instance: 1))
        }
        #expect(search.writes == request + 1 && search.result == nil)
        search.fire(after: .seconds(1))
        #expect(search.actions.handoff == ExtendedHostFixture.handoff)
    }

    @Test func `an adapter that goes while the receipt is written does not take the handoff away`() throws {
        var search = try Search()
        search.decision = nil
        search.see()
        search.writeResult = { _ in .notified([], instance: 1) }
        let join = try #require(search.hostActions.joins.only)
        for (_, bytes) in search.host.pump(search.host.decide(join)).frames {
            search.tell(1, .notified(bytes, instance: 1))
        }
        let actions = search.client.radioUnavailable(RadioUnavailability(.poweredOff), at: search.host.now)
        #expect(actions.handoff == ExtendedHostFixture.handoff)
    }

    @Test func `reserved keys of a basic handoff are not the app's`() throws {
        var client = try ClientFixture()
        _ = client.begin()
        _ = client.see("a")
        client.bring(1, to: .awaitingAnswer)
        let envelope = Envelope.handoff(appId: "app", sessionId: "s", payload: ["ndk.requestId": "x", "room": "1"])
        #expect(client.notify(1, envelope.encoded()).handoff?.payload == ["room": "1"])
    }
}
