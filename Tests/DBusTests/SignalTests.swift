// SPDX-License-Identifier: MIT

import DBus
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
