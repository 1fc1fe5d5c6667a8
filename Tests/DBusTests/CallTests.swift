// SPDX-License-Identifier: MIT

import DBus
import Glibc
import Testing

@Suite struct CallTests {
    @Test func valuesGoBothWays() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(), at: "/obj")
        for value in ValueTests.samples {
            let answer = try await fixture.call("/obj", TestObject.interface, "Echo", [.variant(value)], returning: "v")
            #expect(answer == [.variant(value)])
        }
    }

    @Test func errorsArriveWithTheirNames() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(), at: "/obj")
        let error = await failure { () throws(DBusError) in
            try await fixture.call("/obj", TestObject.interface, "Fail")
        }
        #expect(error == DBusError(.remote, "broken as asked", name: "org.example.Error.Broken"))
    }

    @Test(arguments: [
        ("/obj", TestObject.interface, "Nothing", ErrorName.unknownMethod),
        ("/obj", "org.example.Other", "Echo", ErrorName.unknownMethod),
        ("/nowhere", TestObject.interface, "Echo", ErrorName.unknownObject),
        ("/obj", TestObject.interface, "Echo", ErrorName.invalidArguments),
        ("/obj", TestObject.interface, "Forget", ErrorName.failed),
        ("/obj", TestObject.interface, "WrongAnswer", ErrorName.failed),
        ("/obj", "org.freedesktop.DBus.Properties", "Get", ErrorName.invalidArguments),
        ("/obj", "org.freedesktop.DBus.Properties", "Nothing", ErrorName.unknownMethod),
        ("/obj", "org.freedesktop.DBus.Peer", "Nothing", ErrorName.unknownMethod),
        ("/obj", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", ErrorName.unknownMethod),
        ("/obj", "org.freedesktop.DBus.Introspectable", "Nothing", ErrorName.unknownMethod),
    ])
    func everyCallIsAnswered(_ path: String, _ interface: String, _ member: String, _ name: String) async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(), at: "/obj")
        let path = try #require(ObjectPath(validating: path))
        let error = await failure { () throws(DBusError) in try await fixture.call(path, interface, member) }
        #expect(error?.name == name)
        #expect(error?.code == .remote)
    }

    @Test func answersOfAnotherTypeAreRefused() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(), at: "/obj")
        let error = await failure { () throws(DBusError) in
            try await fixture.call("/obj", TestObject.interface, "Echo", [.variant(.byte(1))], returning: "s")
        }
        #expect(error?.code == .signatureMismatch)
    }

    @Test func nobodyAtANameIsSaidSo() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let error = await failure { () throws(DBusError) in
            try await fixture.client.call("org.example.Nobody", "/", "a.b", "C")
        }
        #expect(error?.isServiceUnknown == true)
    }

    @Test(arguments: [
        DBusCall("nodots", "/", "a.b", "C"), DBusCall("a.b", "/", "nodots", "C"), DBusCall("a.b", "/", "a.b", "C.D"),
        DBusCall("a.b", "/", "a.b", "C", [.string("\0")]),
    ])
    func wrongCallsAreRefusedHere(_ call: DBusCall) async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let error = await failure { () throws(DBusError) in try await fixture.client.call(call) }
        #expect(error?.code == .invalidArgument)
    }

    @Test func aSilentPeerTimesOut() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let held = try await fixture.hold()
        let error = await failure { () throws(DBusError) in
            try await fixture.call("/obj", TestObject.interface, "Hold", timeout: .milliseconds(30))
        }
        #expect(error?.code == .timedOut)
        // An answer that comes too late harms nobody.
        try await held.next().reply()
        try await fixture.ping()
    }

    @Test func aCancelledTaskWaitsNoLonger() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let held = try await fixture.hold()
        let task = Task {
            await failure { () throws(DBusError) in try await fixture.call("/obj", TestObject.interface, "Hold") }
        }
        let call = try await held.next()
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        call.reply()
        try await fixture.ping()
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await failure { () throws(DBusError) in try await fixture.call("/obj", "a.b", "C") }
        }
        #expect(await early.value?.code == .cancelled)
    }

    @Test func answersMayComeFromAnyThreadAndOutOfOrder() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let held = try await fixture.hold()
        async let first = fixture.call("/obj", TestObject.interface, "Echo", [.variant(.byte(1))])
        let one = try await held.next()
        async let second = fixture.call("/obj", TestObject.interface, "Echo", [.variant(.byte(2))])
        let two = try await held.next()
        two.reply(two.arguments)
        two.reply([])
        one.reply(one.arguments)
        #expect(try await first == [.variant(.byte(1))])
        #expect(try await second == [.variant(.byte(2))])
    }

    @Test func aThousandCallsMayBeUnderway() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(), at: "/obj")
        let answers = Inbox<Result<[DBusValue], DBusError>>()
        for number in UInt32(0)..<1000 {
            fixture.client.send(
                call: DBusCall(
                    fixture.server.uniqueName, "/obj", TestObject.interface, "Echo", [.variant(.uint32(number))])
            ) { answers.put($0) }
        }
        for number in UInt32(0)..<1000 {
            #expect(try await answers.next().get() == [.variant(.uint32(number))])
        }
    }

    @Test func pendingCallsAreBounded() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        _ = try await fixture.hold()
        let answers = Inbox<DBusError.Code?>()
        for _ in 0...4096 {
            fixture.client.send(call: DBusCall(fixture.server.uniqueName, "/obj", TestObject.interface, "Hold")) {
                if case .failure(let error) = $0 { answers.put(error.code) }
            }
        }
        // The server takes 1024 at once and answers the rest with an error; the client sends 4096 at once.
        var codes: [DBusError.Code: Int] = [:]
        for _ in 0..<(4097 - 1024) {
            if let code = try await answers.next() { codes[code, default: 0] += 1 }
        }
        #expect((codes[.limitExceeded] ?? 0) + (codes[.remote] ?? 0) == 4097 - 1024)
        #expect((codes[.remote] ?? 0) >= 4096 - 1024 || codes[.limitExceeded] == 1)
    }

    @Test func descriptorsPassAndNoneIsLost() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(), at: "/obj")
        let before = CallTests.openDescriptors(of: "pipe:")
        for _ in 0..<50 {
            var ends: [Int32] = [-1, -1]
            try #require(pipe(&ends) == 0)
            let sent = UnixFD(owning: ends[1])
            let reader = UnixFD(owning: ends[0])
            let answer = try await fixture.call(
                "/obj", TestObject.interface, "Open", [.unixFD(sent)], returning: "h")
            let received = try #require(answer.first?.asUnixFD)
            #expect(received.number != sent.number)
            var byte: UInt8 = 7
            #expect(write(received.number, &byte, 1) == 1)
            var back: UInt8 = 0
            #expect(read(reader.number, &back, 1) == 1)
            #expect(back == 7)
        }
        // The server's copy of the last call goes when its loop has let go of it: after the next call.
        try await fixture.ping()
        #expect(CallTests.openDescriptors(of: "pipe:") <= before + 2)
    }

    /// Open descriptors of this process whose target starts with a text. Other tests open sockets, but no pipes that
    /// stay.
    static func openDescriptors(of prefix: String) -> Int {
        var count = 0
        for number in 0..<1024 {
            var buffer = [CChar](repeating: 0, count: 64)
            let length = readlink("/proc/self/fd/\(number)", &buffer, 63)
            guard length > 0 else { continue }
            if String(decoding: buffer[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self).hasPrefix(prefix) {
                count += 1
            }
        }
        return count
    }

    @Test func handlersRunOnTheLoopInOrder() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let inbox = Inbox<String>()
        let loop = fixture.loop
        let path: ObjectPath = "/obj"
        let server = fixture.server
        try await fixture.server.export(
            TestObject(onCall: { call in
                // On the loop: the actor's synchronous methods are at hand.
                server.assumeIsolated { server in
                    try? server.emitSignal(path, TestObject.interface, "Ticked", [.uint32(1)])
                    call.reply(call.arguments)
                    try? server.emitSignal(path, TestObject.interface, "Ticked", [.uint32(2)])
                }
            }), at: path)
        _ = try await fixture.client.addMatch(MatchRule(sender: server.uniqueName, member: "Ticked")) { message in
            #expect(loop.isCurrent)
            inbox.put("signal \(message.body[0].asInteger ?? 0)")
        }
        fixture.client.send(
            call: DBusCall(server.uniqueName, path, TestObject.interface, "Echo", [.variant(.byte(1))])
        ) { _ in inbox.put("answer") }
        #expect(try await inbox.next() == "signal 1")
        #expect(try await inbox.next() == "answer")
        #expect(try await inbox.next() == "signal 2")
    }
}

extension BusFixture {
    /// A round trip to the server.
    func ping() async throws(DBusError) {
        _ = try await call("/", "org.freedesktop.DBus.Peer", "Ping", returning: "")
    }
}
