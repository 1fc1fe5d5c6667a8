// SPDX-License-Identifier: MIT

import DBus
import Dispatch
import Synchronization
import Testing

/// Calls from code that is not on the connection's loop. They are sent on the caller's own thread.
@Suite(.timeLimit(.minutes(1)))
struct CallerTests {
    @Test func aCallIsSentWithoutATurnOfTheLoop() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let server = try await DBusConnection.open(fixture.bus.busAddress, on: EventLoop(name: "server"))
        let held = try await BusFixture.hold(on: server)
        let release = DispatchSemaphore(value: 0)
        let stuck = Inbox<Void>()
        fixture.loop.execute {
            stuck.put(())
            release.wait()
        }
        try await stuck.next()
        async let answer = fixture.client.call(
            server.uniqueName, "/obj", TestObject.interface, "Echo", [.variant(.byte(1))])
        let call = try await held.next()
        release.signal()
        call.reply(call.arguments)
        #expect(try await answer == [.variant(.byte(1))])
    }

    @Test func theEarlierOfTwoTimeLimitsComesFirst() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let held = try await fixture.hold()
        async let patient = fixture.call("/obj", TestObject.interface, "Echo", [.variant(.byte(1))])
        let call = try await held.next()
        for _ in 0..<3 {
            let error = await failure { () throws(DBusError) in
                try await fixture.call("/obj", TestObject.interface, "Hold", timeout: .milliseconds(20))
            }
            #expect(error?.code == .timedOut)
        }
        call.reply(call.arguments)
        #expect(try await patient == [.variant(.byte(1))])
    }

    @Test func timeLimitsThatEndTogetherAllEnd() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        _ = try await fixture.hold()
        let codes = await withTaskGroup(of: DBusError.Code?.self) { group in
            for number in 0..<40 {
                group.addTask {
                    await failure { () throws(DBusError) in
                        try await fixture.call(
                            "/obj", TestObject.interface, "Hold", timeout: .milliseconds(20 + number % 4))
                    }?.code
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count == 40 && codes.allSatisfy { $0 == .timedOut })
    }

    @Test func callsFromManyThreadsHaveEachItsOwnAnswer() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(), at: "/obj")
        let right = await withTaskGroup(of: Int.self) { group in
            for caller in UInt32(0)..<8 {
                group.addTask {
                    var right = 0
                    for number in 0..<100 {
                        let value = DBusValue.variant(.uint32(caller << 16 | UInt32(number)))
                        let answer = try? await fixture.call("/obj", TestObject.interface, "Echo", [value])
                        if answer == [value] { right += 1 }
                    }
                    return right
                }
            }
            return await group.reduce(0, +)
        }
        #expect(right == 800)
    }

    @Test func aConnectionThatClosesAmongCallsEndsThemAll() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(), at: "/obj")
        let started = Inbox<Void>()
        let codes = await withTaskGroup(of: DBusError.Code?.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    while true {
                        let error = await failure { () throws(DBusError) in
                            try await fixture.call("/obj", TestObject.interface, "Echo", [.variant(.byte(1))])
                        }
                        if let error { return error.code }
                        started.put(())
                    }
                }
            }
            for _ in 0..<50 { try? await started.next() }
            await fixture.client.close()
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count == 8 && codes.allSatisfy { $0 == .closed })
    }

    @Test func aTaskThatIsCancelledWhileItSendsWaitsNoLonger() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        _ = try await fixture.hold()
        let turns = Atomic(0)
        for number in 0..<1000 {
            let task = Task {
                await failure { () throws(DBusError) in
                    try await fixture.call("/obj", TestObject.interface, "Hold")
                }
            }
            // The moments in which a cancellation could be lost are short: the steps through them are fine. Nothing is
            // waited for, since there may be no other thread.
            for _ in 0..<number * 20 { _ = turns.add(1, ordering: .relaxed) }
            task.cancel()
            #expect(await task.value?.code == .cancelled)
        }
    }
}
