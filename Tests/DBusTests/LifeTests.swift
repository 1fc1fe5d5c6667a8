// SPDX-License-Identifier: MIT

import DBus
import Glibc
import Testing

@Suite struct LifeTests {
    @Test func aLostBusFailsEverythingThatWaits() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let held = try await fixture.hold()
        let stream = try await fixture.client.signals(MatchRule())
        let told = Inbox<DBusError.Code>()
        await fixture.client.onDisconnect { told.put($0.code) }
        let calls = (0..<5).map { _ in
            Task {
                await failure { () throws(DBusError) in try await fixture.call("/obj", TestObject.interface, "Hold") }
            }
        }
        var kept: [MethodCall] = []
        for _ in 0..<5 { kept.append(try await held.next()) }
        let closed = Task { await fixture.client.closed }
        fixture.bus.stop()
        for call in calls { #expect(await call.value?.code == .disconnected) }
        #expect(await closed.value.code == .disconnected)
        #expect(try await told.next() == .disconnected)
        for await _ in stream {}
        for call in kept { call.reply() }
        let after = await failure { () throws(DBusError) in try await fixture.ping() }
        #expect(after?.code == .disconnected)
        let late = Inbox<DBusError.Code>()
        await fixture.client.onDisconnect { late.put($0.code) }
        #expect(try await late.next() == .disconnected)
    }

    @Test func closingFailsWhatWaitsAndMayBeRepeated() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let held = try await fixture.hold()
        let call = Task {
            await failure { () throws(DBusError) in try await fixture.call("/obj", TestObject.interface, "Hold") }
        }
        let kept = try await held.next()
        await fixture.client.close()
        await fixture.client.close()
        #expect(await call.value?.code == .closed)
        #expect(await fixture.client.closed.code == .closed)
        kept.reply()
    }

    @Test func aCancelledWaitForTheEndReturns() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let wait = Task { await fixture.client.closed }
        wait.cancel()
        #expect(await wait.value.code == .cancelled)
        try await fixture.ping()
    }

    @Test func openingSaysWhatIsWrong() async throws {
        let loop = EventLoop(name: "test")
        let missing = await failure { () throws(DBusError) in
            try await DBusConnection.open(.address("unix:path=/nonexistent/bus"), on: loop)
        }
        #expect(missing?.code == .noBus)
        for text in ["", "x", "nonsense:", "unix:path=/a\0b"] {
            let wrong = await failure { () throws(DBusError) in
                try await DBusConnection.open(.address(text), on: loop)
            }
            #expect(wrong?.code == .invalidArgument)
        }
    }

    /// A socket that nobody accepts from, as that of a daemon that hangs.
    @Test func aBusThatHangsTimesOut() async throws {
        let name = "nearby-dbus-test-\(getpid())"
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { path in
            for (index, byte) in name.utf8.enumerated() { path[index + 1] = byte }
        }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + 1 + name.utf8.count)
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, length) }
        }
        try #require(bound == 0 && listen(listener, 1) == 0)
        let loop = EventLoop(name: "test")
        let error = await failure { () throws(DBusError) in
            try await DBusConnection.open(
                .address("unix:abstract=\(name)"), on: loop, timeout: .milliseconds(50))
        }
        #expect(error?.code == .timedOut)
        let task = Task {
            await failure { () throws(DBusError) in
                try await DBusConnection.open(.address("unix:abstract=\(name)"), on: loop)
            }
        }
        task.cancel()
        #expect(await task.value?.code == .cancelled)
    }

    @Test func aConnectorComesBackWhenTheBusDoes() async throws {
        let bus = try await PrivateBus()
        defer { withExtendedLifetime(bus) {} }
        let connector = BusConnector(bus.busAddress, on: EventLoop(name: "test"))
        let inbox = Inbox<BusEvent>()
        connector.start { inbox.put($0) }
        guard case .connected(let first) = try await inbox.next() else { throw DBusError(.noBus, "not connected") }
        bus.stop()
        guard case .disconnected(let error) = try await inbox.next() else { throw DBusError(.noBus, "not lost") }
        #expect(error.code == .disconnected)
        #expect(await first.closed.code == .disconnected)
        guard case .disconnected(let absent) = try await inbox.next() else { throw DBusError(.noBus, "not retried") }
        #expect(absent.code == .noBus)
        try await bus.restart()
        while true {
            guard case .connected(let second) = try await inbox.next() else { continue }
            #expect(try await second.nameOwner(of: "org.freedesktop.DBus") == "org.freedesktop.DBus")
            connector.stop()
            #expect(await second.closed.code == .closed)
            return
        }
    }

    /// A bus that lets everybody in and throws them out again, or that has more to say than a message may hold.
    @Test func aConnectorPausesLongerWhileNoConnectionLasts() async throws {
        let bus = try await PrivateBus()
        defer { withExtendedLifetime(bus) {} }
        let connector = BusConnector(bus.busAddress, on: EventLoop(name: "test"))
        let inbox = Inbox<BusEvent>()
        connector.start { inbox.put($0) }
        let began = ContinuousClock.now
        for _ in 0..<4 {
            guard case .connected(let connection) = try await inbox.next() else { throw DBusError(.noBus, "none") }
            await connection.close()
            guard case .disconnected = try await inbox.next() else { throw DBusError(.noBus, "not lost") }
        }
        // 100, 200 and 400 ms, not three times 100.
        #expect(ContinuousClock.now - began >= .milliseconds(690))
        connector.stop()
    }

    @Test func aConnectorsStreamEndsWithIt() async throws {
        let bus = try await PrivateBus()
        defer { withExtendedLifetime(bus) {} }
        let connector = BusConnector(bus.busAddress, on: EventLoop(name: "test"))
        for await event in connector.events() {
            guard case .connected = event else { continue }
            connector.stop()
        }
    }

    @Test func aSecondStreamOfAConnectorIsEmptyAndChangesNothing() async throws {
        let bus = try await PrivateBus()
        defer { withExtendedLifetime(bus) {} }
        let loop = EventLoop(name: "test")
        let connector = BusConnector(bus.busAddress, on: loop)
        let inbox = Inbox<BusEvent>()
        connector.start { inbox.put($0) }
        guard case .connected(let connection) = try await inbox.next() else { throw DBusError(.noBus, "none") }
        for await event in connector.events() { Issue.record("an event of somebody else's: \(event)") }
        // What its end asks for has been done by the loop's next turn.
        await withCheckedContinuation { continuation in loop.execute { continuation.resume() } }
        #expect(try await connection.nameOwner(of: "org.freedesktop.DBus") == "org.freedesktop.DBus")
        connector.stop()
    }

    @Test func lettingGoOfAConnectionClosesIt() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let inbox = Inbox<String?>()
        var other: DBusConnection? = try await DBusConnection.open(fixture.bus.busAddress, on: fixture.loop)
        _ = try await fixture.client.watchOwner(of: try #require(other?.uniqueName)) { inbox.put($0) }
        #expect(try await inbox.next() == other?.uniqueName)
        other = nil
        #expect(try await inbox.next() == nil)
    }

    /// A peer that does not read must not make us grow: the daemon is stopped while we send.
    @Test func bytesTowardsABusThatDoesNotReadAreBounded() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let process = try #require(fixture.bus.processID)
        kill(process, SIGSTOP)
        defer { kill(process, SIGCONT) }
        let body: [DBusValue] = [.bytes([UInt8](repeating: 1, count: 1 << 20))]
        var sent = 0
        let error = await failure { () throws(DBusError) in
            while sent < 64 {
                try await fixture.server.emitSignal("/a", "a.b", "C", body)
                sent += 1
            }
        }
        #expect(error?.code == .limitExceeded)
        #expect(sent >= 16 && sent < 32)
    }

    /// As many calls and signals as may wait are no reason to give up at the answer behind them.
    @Test func anAnswerWaitsBehindTheMostThatMayWait() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let asked = Inbox<MethodCall>()
        let interface = ExportedInterface(TestObject.interface, methods: [.init("Give", returns: "ay")])
        try await fixture.server.export(
            TestObject(interfaces: [interface], onCall: { asked.put($0) }), at: "/obj")
        let answers = Inbox<Result<[DBusValue], DBusError>>()
        fixture.client.send(call: DBusCall(fixture.server.uniqueName, "/obj", TestObject.interface, "Give")) {
            answers.put($0)
        }
        let call = try await asked.next()
        let process = try #require(fixture.bus.processID)
        kill(process, SIGSTOP)
        for bytes in [Limits.outgoingBytes - (1 << 20), Limits.messageBytes - (1 << 10)] {
            try await fixture.server.emitSignal(
                "/a", "a.b", "C", [.bytes([UInt8](repeating: 1, count: bytes))])
        }
        call.reply([.bytes([7])])
        kill(process, SIGCONT)
        #expect(try await answers.next().get() == [.bytes([7])])
        try await fixture.ping()
    }
}
