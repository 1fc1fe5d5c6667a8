// SPDX-License-Identifier: MIT

import Testing

import func CDBus.dbus_free
import func CDBus.dbus_message_marshal
import func CDBus.dbus_message_set_serial

@testable import DBus

/// What a bus ends the connection for is refused before it is sent, and the connection goes on. The private bus has the
/// limits of a system bus here: they are dbus-daemon's own (bus/config-parser.c), which its configuration leaves alone.
@Suite(.timeLimit(.minutes(1)))
struct BusLimitTests {
    static let path: ObjectPath = "/obj"

    enum Way: CaseIterable {
        case call, callWithoutAnswer, callWithHandler, signal, signalToOne
    }

    /// Sends a body, and says why it was not sent or not answered.
    static func send(
        _ body: [DBusValue], _ way: Way = .call, _ path: ObjectPath = path, _ interface: String = TestObject.interface,
        in fixture: BusFixture
    ) async throws -> DBusError? {
        let server = fixture.server.uniqueName
        let call = DBusCall(server, path, interface, "Take", body)
        switch way {
        case .call: return await failure { () throws(DBusError) in try await fixture.client.call(call) }
        case .callWithoutAnswer:
            return await failure { () throws(DBusError) in try await fixture.client.sendWithoutReply(call) }
        case .callWithHandler:
            let answers = Inbox<Result<[DBusValue], DBusError>>()
            fixture.client.send(call: call) { answers.put($0) }
            if case .failure(let error) = try await answers.next() { return error }
            return nil
        case .signal, .signalToOne:
            return await failure { () throws(DBusError) in
                try await fixture.client.emitSignal(
                    path, interface, "Ticked", body, to: way == .signal ? nil : server)
            }
        }
    }

    /// Exports an object that takes and gives values of a type.
    static func exportTaker(_ signature: Signature, giving body: [DBusValue] = [], on connection: DBusConnection)
        async throws
    {
        let interface = ExportedInterface(
            TestObject.interface, methods: [.init("Take", signature), .init("Give", returns: signature)])
        try await connection.export(
            TestObject(interfaces: [interface], onCall: { $0.reply($0.member == "Give" ? body : []) }), at: path)
    }

    @Test(arguments: Way.allCases)
    func theHeaderCountsTowardsTheBytesOfAMessage(_ way: Way) async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        // The body alone is just what a message may have.
        let body = [DBusValue.bytes([UInt8](repeating: 0, count: Limits.messageBytes - 4))]
        let error = try await Self.send(body, way, in: fixture)
        #expect(error?.code == .limitExceeded)
        #expect(error?.advice != nil)
        try await fixture.ping()
    }

    /// The longest message that is not refused is one that the bus takes, whatever stands in its header; and with one
    /// byte more it is refused.
    @Test(arguments: [("/obj", 0), ("/" + String(repeating: "p", count: 4000), 253)])
    func theLongestMessageArrives(_ text: String, _ others: Int) async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let path = try #require(ObjectPath(validating: text))
        let signature = try #require(Signature(validating: "ay" + String(repeating: "y", count: others)))
        let taken = Inbox<Int>()
        let interface = ExportedInterface(TestObject.interface, methods: [.init("Take", signature)])
        try await fixture.server.export(
            TestObject(
                interfaces: [interface],
                onCall: {
                    taken.put($0.arguments.first?.asBytes?.count ?? 0)
                    $0.reply()
                }), at: path)
        let header = BodyCheck.headerBytes(
            path: text, interface: TestObject.interface, member: "Take", destination: fixture.server.uniqueName)
        // The array's length takes four.
        let count = Limits.messageBytes - header - 4 - others
        for (count, code) in [(count + 1, DBusError.Code.limitExceeded), (count, nil)] {
            let body = [.bytes([UInt8](repeating: 1, count: count))] + [DBusValue](repeating: .byte(1), count: others)
            let error = try await Self.send(body, .call, path, in: fixture)
            try #require(error?.code == code)
        }
        #expect(try await taken.next() == count)
        try await fixture.ping()
    }

    /// A path that came in a message is as long as its sender liked.
    @Test func aPathMayBeTooLongByItself() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let path = ObjectPath(trusted: "/" + String(repeating: "p", count: Limits.messageBytes - 64))
        let error = try await Self.send([], .call, path, in: fixture)
        #expect(error?.code == .limitExceeded)
        try await fixture.ping()
    }

    @Test func anAnswerThatNoBusTakesIsAnErrorToTheCaller() async throws {
        let body = [DBusValue.bytes([UInt8](repeating: 0, count: Limits.messageBytes - 4))]
        try await Self.expectFailure(of: "ay", giving: body)
    }

    /// The caller hears that what it asked for does not go out, and the connection goes on.
    private static func expectFailure(of signature: Signature, giving body: [DBusValue]) async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await exportTaker(signature, giving: body, on: fixture.server)
        let error = await failure { () throws(DBusError) in
            try await fixture.call(path, TestObject.interface, "Give")
        }
        #expect(error?.name == ErrorName.failed)
        try await fixture.ping()
    }

    /// The bus adds the sender to what it takes, and so may hand on more than it takes.
    @Test func aStrangersLongestMessageDoesNotEndTheConnection() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let inbox = Inbox<Int>()
        _ = try await fixture.client.addMatch(MatchRule(member: "Ticked")) {
            inbox.put($0.body.first?.asBytes?.count ?? 0)
        }
        let client = fixture.client.uniqueName
        let count = try Limits.messageBytes - DBusConnection.unchecked(0, to: client).size
        try await fixture.server.sendUnchecked(count, to: client)
        try await fixture.ping()
        inbox.put(-1)
        #expect(try await inbox.next() == count)
    }

    @Test(arguments: Way.allCases)
    func moreFileDescriptorsThanABusTakesAreRefused(_ way: Way) async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await Self.exportTaker("ah", on: fixture.server)
        let descriptor = try UnixFD(duplicating: 0)
        func body(_ count: Int) -> [DBusValue] {
            [.array(of: "h", [DBusValue](repeating: .unixFD(descriptor), count: count))]
        }
        #expect(try await Self.send(body(16), way, in: fixture) == nil)
        try await fixture.ping()
        let error = try await Self.send(body(17), way, in: fixture)
        #expect(error?.code == .limitExceeded)
        #expect(error?.advice != nil)
        try await fixture.ping()
    }

    @Test func anAnswerOfTooManyFileDescriptorsIsAnErrorToTheCaller() async throws {
        let descriptor = try UnixFD(duplicating: 0)
        let body = [DBusValue.array(of: "h", [DBusValue](repeating: .unixFD(descriptor), count: 17))]
        try await Self.expectFailure(of: "ah", giving: body)
    }

    /// Two letters each, and none of them a container of ours.
    @Test func aSignatureOfManyByteArraysIsBounded() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let error = try await Self.send([DBusValue](repeating: .bytes([]), count: 128), .signal, in: fixture)
        #expect(error?.code == .invalidArgument)
        #expect(try await Self.send([DBusValue](repeating: .bytes([]), count: 127), .signal, in: fixture) == nil)
        try await fixture.ping()
    }
}

extension DBusConnection {
    /// A signal that no check of ours has seen.
    fileprivate static func unchecked(_ count: Int, to destination: String) throws(DBusError) -> RawMessage {
        let message = try RawMessage.signal("/a", TestObject.interface, "Ticked", [], to: destination)
        try MessageWriter.append([.bytes([UInt8](repeating: 1, count: count))], to: message.pointer)
        return message
    }

    fileprivate func sendUnchecked(_ count: Int, to destination: String) throws(DBusError) {
        try core.transmit(DBusConnection.unchecked(count, to: destination))
    }
}

extension RawMessage {
    /// What a bus counts: header and body.
    fileprivate var size: Int {
        dbus_message_set_serial(pointer, 1)
        var bytes: UnsafeMutablePointer<CChar>?
        var count: Int32 = 0
        guard dbus_message_marshal(pointer, &bytes, &count) != 0 else { return 0 }
        dbus_free(bytes)
        return Int(count)
    }
}
