// SPDX-License-Identifier: MIT

import DBus
import Glibc
import Testing

@Suite struct SignalTests {
    @Test func streamsKeepTheNewestAndEndWithTheConnection() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let stream = try await fixture.client.signals(MatchRule(member: "Ticked"), bufferLimit: 3)
        for number in UInt32(0)..<10 {
            try await fixture.server.emitSignal("/a", TestObject.interface, "Ticked", [.uint32(number)])
        }
        // Answers come after the signals that were sent before them.
        try await fixture.ping()
        await fixture.client.close()
        var seen: [Int] = []
        for await message in stream { seen.append(message.body[0].asInteger ?? -1) }
        #expect(seen == [7, 8, 9])
    }

    @Test func aCancelledSubscriptionIsSilent() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let inbox = Inbox<Int>()
        let kept = try await fixture.client.addMatch(MatchRule(member: "Ticked")) { _ in inbox.put(1) }
        let same = try await fixture.client.addMatch(MatchRule(member: "Ticked")) { _ in inbox.put(2) }
        try await fixture.server.emitSignal("/a", TestObject.interface, "Ticked")
        #expect(try await inbox.next() == 1)
        #expect(try await inbox.next() == 2)
        kept.cancel()
        kept.cancel()
        try await fixture.server.emitSignal("/a", TestObject.interface, "Ticked")
        #expect(try await inbox.next() == 2)
        same.cancel()
        try await fixture.ping()
        try await fixture.server.emitSignal("/a", TestObject.interface, "Ticked")
        try await fixture.ping()
        inbox.put(3)
        #expect(try await inbox.next() == 3)
    }

    /// Nobody but the owner of a name can send in its name, not even straight to us.
    @Test func aWellKnownSenderCannotBePretended() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.requestName("org.example.Service")
        let inbox = Inbox<Int>()
        _ = try await fixture.client.addMatch(MatchRule(sender: "org.example.Service", member: "Ticked")) {
            inbox.put($0.body[0].asInteger ?? -1)
        }
        let stranger = try await DBusConnection.open(fixture.bus.busAddress, on: fixture.loop)
        try await stranger.emitSignal("/a", "a.b", "Ticked", [.uint32(1)], to: fixture.client.uniqueName)
        _ = try await stranger.call(fixture.client.uniqueName, "/", "org.freedesktop.DBus.Peer", "Ping")
        try await fixture.server.emitSignal("/a", "a.b", "Ticked", [.uint32(2)])
        #expect(try await inbox.next() == 2)
        try await fixture.server.releaseName("org.example.Service")
        try await stranger.requestName("org.example.Service")
        try await stranger.emitSignal("/a", "a.b", "Ticked", [.uint32(3)])
        #expect(try await inbox.next() == 3)
    }

    @Test func ownersAreFollowed() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let inbox = Inbox<String>()
        #expect(try await fixture.client.nameOwner(of: "org.example.Service") == nil)
        let token = try await fixture.client.watchOwner(of: "org.example.Service") { inbox.put($0 ?? "nobody") }
        #expect(try await inbox.next() == "nobody")
        try await fixture.server.requestName("org.example.Service")
        #expect(try await inbox.next() == fixture.server.uniqueName)
        try await fixture.server.requestName("org.example.Service")
        let error = await failure { () throws(DBusError) in
            try await fixture.client.requestName("org.example.Service")
        }
        #expect(error?.code == .addressInUse)
        #expect(try await fixture.client.nameOwner(of: "org.example.Service") == fixture.server.uniqueName)
        let late = try await fixture.client.watchOwner(of: "org.example.Service") { inbox.put("late \($0 ?? "")") }
        #expect(try await inbox.next() == "late \(fixture.server.uniqueName)")
        late.cancel()
        await fixture.server.close()
        #expect(try await inbox.next() == "nobody")
        token.cancel()
    }

    /// The bus refuses the rule of two subscribers, and the one who is told first asks again at once.
    @Test func aRefusedRuleIsAskedForAgain() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.refuse(["AddMatch"])
        let (client, rule) = (fixture.client, MatchRule(member: "Ticked"))
        let answers = Inbox<DBusError.Code?>()
        let subscribe: @Sendable (isolated DBusConnection, _ asksAgain: Bool) -> Void = { client, asksAgain in
            client.addMatch(rule) { _ in
            } completion: { [weak client] result in
                answers.put(result.code)
                guard asksAgain else { return }
                client?.assumeIsolated { client in
                    _ = client.addMatch(rule) { _ in
                    } completion: {
                        answers.put($0.code)
                    }
                }
            }
        }
        await subscribe(client, true)
        await subscribe(client, false)
        for _ in 0..<3 { #expect(try await answers.next() == .accessDenied) }
        try await fixture.refuse([])
        let ticks = try await client.signals(rule)
        try await fixture.server.emitSignal("/a", TestObject.interface, "Ticked")
        try await fixture.ping()
        await fixture.client.close()
        var iterator = ticks.makeAsyncIterator()
        #expect(await iterator.next()?.member == "Ticked")
    }

    enum Subscribing: CaseIterable {
        case match, stream, owner
    }

    @Test(arguments: Subscribing.allCases)
    func aCancelledTaskWaitsForNoSubscription(_ subscribing: Subscribing) async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let daemon = try #require(fixture.bus.processID)
        kill(daemon, SIGSTOP)
        let begun = Inbox<Void>()
        let told = Inbox<Int>()
        let (client, rule) = (fixture.client, MatchRule(member: "Ticked"))
        let task = Task {
            begun.put(())
            return await failure { () throws(DBusError) in
                switch subscribing {
                case .match: _ = try await client.addMatch(rule) { _ in told.put(1) }
                case .stream: _ = try await client.signals(rule)
                case .owner: _ = try await client.watchOwner(of: "org.example.Service") { _ in }
                }
            }
        }
        try await begun.next()
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        kill(daemon, SIGCONT)
        try await fixture.ping()
        try await fixture.server.emitSignal("/a", TestObject.interface, "Ticked")
        try await fixture.ping()
        told.put(2)
        #expect(try await told.next() == 2)
    }

    @Test func wrongNamesAndRulesAreRefused() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let client = fixture.client
        let errors = await [
            failure { () throws(DBusError) in try await client.requestName(":1.2") },
            failure { () throws(DBusError) in try await client.nameOwner(of: "x") },
            failure { () throws(DBusError) in try await client.watchOwner(of: "x") { _ in } },
            failure { () throws(DBusError) in try await client.addMatch(MatchRule(member: "a.b")) { _ in } },
            failure { () throws(DBusError) in try await client.signals(MatchRule(), bufferLimit: 0) },
            failure { () throws(DBusError) in try await client.emitSignal("/", "x", "Y") },
        ]
        #expect(errors.allSatisfy { $0?.code == .invalidArgument })
    }
}

extension Result where Failure == DBusError {
    fileprivate var code: DBusError.Code? {
        if case .failure(let error) = self { error.code } else { nil }
    }
}
