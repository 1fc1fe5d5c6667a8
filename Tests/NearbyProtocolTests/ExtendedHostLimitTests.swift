// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyProtocol

@Suite struct ExtendedHostLimitTests {
    var host: ExtendedHostFixture

    init() throws {
        host = try ExtendedHostFixture(passcode: "48291365")
    }

    private mutating func attempt(_ peer: PeerID, passcode: String) throws -> [ExtendedHostAction] {
        host.connect(peer)
        return host.open(try RawExtendedClient(host.hello(peer), passcode: passcode), from: peer)
    }

    // MARK: Attempts

    @Test mutating func `25 wrong passcodes from 25 addresses, and the recovery`() throws {
        for number in 0..<25 {
            let peer = PeerID("attacker \(number)")
            let actions = try attempt(peer, passcode: "0000")
            if number < 20 {
                #expect(host.plaintextReason(actions) == .unauthorized)
                let attacked = actions.events.contains(.underAttack(retryAfter: 30))
                #expect(attacked == (number == 19))
            } else {
                let reject = host.plaintextReject(actions)
                #expect(reject?.rejection?.reason == .busy)
                #expect(reject?.payload?.int("retryAfter") == 30)
                #expect(actions.events.isEmpty)
            }
            _ = host.machine.centralDisconnected(peer, at: host.now)
        }
        // The right one is turned away too, until there is room for one attempt.
        #expect(host.plaintextReason(try attempt("friend", passcode: "48291365")) == .busy)
        _ = host.fire(after: .milliseconds(29_001))
        #expect(host.plaintextReject(try attempt("friend", passcode: "48291365"))?.payload?.int("retryAfter") == 1)
        _ = host.fire(after: .milliseconds(999))
        #expect(try attempt("friend", passcode: "48291365").joins.count == 1)
        // Success costs nothing; the one that is left may still be tried, and is then used up without a new alarm.
        #expect(try attempt("other friend", passcode: "48291365").joins.count == 1)
        let last = try attempt("attacker", passcode: "0000")
        #expect(host.plaintextReason(last) == .unauthorized)
        #expect(!last.events.contains(.underAttack(retryAfter: 30)))
        #expect(host.plaintextReason(try attempt("attacker", passcode: "0000")) == .busy)
    }

    @Test mutating func `right after wrong`() throws {
        #expect(host.plaintextReason(try attempt("a", passcode: "48291364")) == .unauthorized)
        #expect(host.machine.failures.failures(of: "a") == 1)
        #expect(try attempt("a", passcode: "48291365").joins.count == 1)
        #expect(host.machine.failures.failures(of: "a") == 0)
    }

    @Test mutating func `without a passcode what does not open is never limited`() throws {
        host = try ExtendedHostFixture()
        for _ in 0..<50 { #expect(host.plaintextReason(try attempt("a", passcode: "0000")) == .unauthorized) }
        host.connect("b")
        #expect(host.open(try RawExtendedClient(host.hello("b")), from: "b").joins.count == 1)
    }

    @Test mutating func `a new passcode makes hellos stale and leaves the budget as it is`() throws {
        for number in 0..<20 { _ = host.pump(try attempt(PeerID("a\(number)"), passcode: "0000")) }
        host.connect("b")
        let old = try RawExtendedClient(host.hello("b"), passcode: "48291365")
        _ = host.machine.changePasscode(to: try Passcode("new one"), at: host.now)
        #expect(host.plaintextReason(host.open(old, from: "b")) == .stale)
        #expect(host.plaintextReason(try attempt("b", passcode: "new one")) == .busy)
        _ = host.fire(after: .seconds(30))
        #expect(try attempt("b", passcode: "new one").joins.count == 1)
    }

    @Test func `the budget refills one by one, and never past its size`() {
        var budget = AttemptBudget()
        let start = Instant.now
        for _ in 0..<20 { _ = budget.failed(at: start) }
        #expect(budget.retryAfter(at: start) == 30)
        #expect(budget.retryAfter(at: start + .seconds(29)) == 1)
        #expect(budget.retryAfter(at: start + .seconds(61)) == nil)
        // Half a step that had passed is not lost.
        #expect(budget.failed(at: start + .seconds(89)) == false)
        #expect(budget.failed(at: start + .seconds(89)) == false)
        #expect(budget.retryAfter(at: start + .seconds(89)) == 1)
        let later = start + .seconds(1_000_000)
        #expect((0..<20).map { _ in budget.failed(at: later) }.last == true)
        #expect(budget.retryAfter(at: later) == 30)
    }

    @Test mutating func `devices that failed are served after those that did not`() throws {
        host.connect("bad", "x", "y", "z", "w", "good")
        _ = host.pump(try attempt("bad", passcode: "0000"))
        var joins: [PeerID: JoinID] = [:]
        // Four that are being served take every place.
        for peer: PeerID in ["x", "y", "z", "w", "good"] {
            joins[peer] = try attempt(peer, passcode: "48291365").joins.first
        }
        for peer: PeerID in ["x", "y", "z", "w"] { #expect(host.decide(try #require(joins[peer])).count == 1) }
        let rejected = try attempt("bad", passcode: "0001")
        let answered = host.decide(try #require(joins["good"]))
        #expect((rejected + answered).notified.isEmpty)
        let next = host.machine.frameSent(1, at: host.now) + host.machine.frameSent(2, at: host.now)
        let served = (next + host.machine.frameSent(3, at: host.now)).notified
        #expect(served.first == "good")
        #expect(served.contains("bad"))
    }

    // MARK: Memory

    @Test func `the hello book is bounded, by device and in all`() throws {
        var host = try ExtendedHostFixture()
        let first = host.hello("a") ?? []
        let kept = try (0..<4).map { _ in try RawExtendedClient(host.hello("a")) }
        #expect(host.plaintextReason(host.open(try RawExtendedClient(first), from: "a")) == .stale)
        for client in kept { #expect(host.open(client, from: "a").joins.count == 1) }
        for number in 0..<300 { _ = host.hello(PeerID("flood \(number)")) }
        #expect(host.machine.book.count == ProtocolLimits.hellos)
        _ = host.fire(after: .seconds(30))
        #expect(host.machine.book.count == 0)
    }

    @Test mutating func `reads at odd offsets are slices of the newest`() throws {
        #expect(host.machine.readHello(1, from: "a", offset: 1, mtu: 23, at: host.now) == [.refuse(1, .invalidOffset)])
        _ = host.hello("a")
        let newest = host.hello("a") ?? []
        let other = host.hello("b") ?? []
        #expect(newest.count == 54 && other[6...] != newest[6...])
        for offset in 1...54 { #expect(host.hello("a", offset: offset) == Array(newest[offset...])) }
        for offset in [-1, 55, 512, 65_535] {
            #expect(
                host.machine.readHello(7, from: "a", offset: offset, mtu: nil, at: host.now) == [
                    .refuse(7, .invalidOffset)
                ])
        }
        // Read again between hello and join: the older one still serves.
        let client = try RawExtendedClient(newest, passcode: "48291365")
        _ = host.hello("a")
        #expect(host.open(client, from: "a").joins.count == 1)
    }

    @Test mutating func `half messages are bounded, and end`() throws {
        func frame(_ tag: UInt8, _ sequence: UInt8 = 0) -> [UInt8] { [1, 0, tag, sequence, 9] }
        host.connect("a", "b")
        #expect(host.write(frame(1), from: "a").refusals.isEmpty)
        #expect(host.write(frame(2), from: "a").refusals.isEmpty)
        #expect(host.write(frame(3), from: "a").refusals == [.insufficientResources])
        #expect(host.write(frame(4), from: "b").refusals.isEmpty)
        // A message of one frame needs no place.
        #expect(host.write([0, 0, 9, 0, 9], from: "a").refusals.isEmpty)
        // 5 s between frames.
        _ = host.fire(after: .milliseconds(4_999))
        #expect(host.write(frame(1, 1), from: "a").refusals.isEmpty)
        #expect(host.fire(after: .milliseconds(1)).faults == [.tooSlow, .tooSlow])
        #expect(host.write(frame(2, 1), from: "a").refusals == [.frameRefused])
        // 60 s a message, however busy.
        for second in 1..<14 {
            _ = host.fire(after: .seconds(4))
            #expect(host.write(frame(1, UInt8(second + 1)), from: "a").refusals.isEmpty)
        }
        _ = host.fire(after: .seconds(4))
        #expect(host.write(frame(1, 15), from: "a").refusals == [.frameRefused])
        // Gone with the device.
        #expect(host.write(frame(5), from: "a").refusals.isEmpty)
        _ = host.machine.centralDisconnected("a", at: host.now)
        #expect(host.machine.assemblies.count == 0)
    }

    @Test mutating func `nothing that a peer does makes the host grow past its bounds`() throws {
        for number in 0..<400 {
            let peer = PeerID("\(number)")
            _ = host.write(
                [1, UInt8(number & 255), UInt8(number >> 8), 0] + [UInt8](repeating: 0, count: 500), from: peer)
            let client = try RawExtendedClient(
                host.hello(peer), passcode: "48291365", request: RawExtendedClient.request(JoinRequestID()))
            // Nobody takes their frames, and the app does not answer.
            _ = host.open(client, from: peer)
            _ = host.write([0, 7, UInt8(number & 255), 0], from: peer)
        }
        #expect(host.machine.attempts.count == ProtocolLimits.attempts)
        #expect(host.machine.admissions.pending.count <= ProtocolLimits.pendingAdmissions)
        #expect(host.machine.assemblies.count <= ProtocolLimits.assemblies)
        #expect(host.machine.transmissions.plaintextCount <= ProtocolLimits.plaintextRejects)
        #expect(host.machine.peers.count <= ProtocolLimits.hostPeers)
        #expect(host.machine.book.count <= ProtocolLimits.hellos)
        // And it all passes.
        for _ in 0..<40 { _ = host.pump(host.fire(after: .seconds(5))) }
        #expect(host.machine.attempts.count == 0 && host.machine.assemblies.count == 0)
        #expect(host.machine.transmissions.count == 0 && host.machine.memory.count == 0)
        #expect(host.machine.nextDeadline == nil)
    }

    @Test func `the table of failures forgets the oldest`() {
        var table = FailureTable()
        for number in 0..<300 { table.failed(PeerID("\(number)")) }
        #expect(table.count == ProtocolLimits.devicesWithFailures)
        #expect(table.failures(of: "0") == 0 && table.failures(of: "299") == 1)
    }

    @Test(arguments: [
        [], [0], [0, 1, 2], [4, 1, 2, 0], [255, 1, 2, 0, 9], [1, 1, 2, 0], [0, 1, 2, 1, 9], [2, 1, 2, 0, 9],
    ])
    mutating func `what is no frame is refused by an ATT error`(_ bytes: [UInt8]) {
        host.connect("a")
        let actions = host.write(bytes, from: "a")
        #expect(actions.refusals == [.frameRefused])
        #expect(actions.faults.count == 1)
        #expect(host.write([1, 1, 2, 0, 9], from: "a", offset: 5).refusals == [.invalidOffset])
    }
}

extension [ExtendedHostAction] {
    fileprivate var notified: [PeerID] {
        compactMap { if case .notify(_, _, let peer) = $0 { peer } else { nil } }
    }
}
