// SPDX-License-Identifier: MIT

import DBus

/// A private bus with two connections to it.
struct BusFixture {
    let bus: PrivateBus
    let loop: EventLoop
    let server: DBusConnection
    let client: DBusConnection

    init() async throws {
        bus = try await PrivateBus()
        loop = EventLoop(name: "test")
        server = try await DBusConnection.open(bus.busAddress, on: loop)
        client = try await DBusConnection.open(bus.busAddress, on: loop)
    }

    /// Makes the bus refuse these methods of its own, and no others.
    func refuse(_ members: [String]) async throws(DBusError) {
        try bus.refuse(members)
        _ = try await server.call(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ReloadConfig")
    }

    /// Called at the end of a test: letting go of a connection closes it, and Swift lets go after the last use.
    func keep() {}

    /// An object whose calls are the test's to answer.
    static func hold(on connection: DBusConnection) async throws -> Inbox<MethodCall> {
        let held = Inbox<MethodCall>()
        try await connection.export(TestObject(onCall: { held.put($0) }), at: "/obj")
        return held
    }

    func hold() async throws -> Inbox<MethodCall> { try await Self.hold(on: server) }

    func call(
        _ path: ObjectPath, _ interface: String, _ member: String, _ body: [DBusValue] = [], returning: String? = nil,
        timeout: Duration = .seconds(25)
    ) async throws(DBusError) -> [DBusValue] {
        try await client.call(server.uniqueName, path, interface, member, body, returning: returning, timeout: timeout)
    }
}

/// An object that answers by closure.
final class TestObject: ExportedObject {
    static let interface = "org.example.Test"

    let interfaces: [ExportedInterface]
    let onCall: @Sendable (MethodCall) -> Void
    let values: @Sendable (String) -> DBusValue?
    let onSet: @Sendable (String, DBusValue) -> DBusError?

    init(
        interfaces: [ExportedInterface] = [TestObject.standard],
        onCall: @escaping @Sendable (MethodCall) -> Void = TestObject.echo,
        values: @escaping @Sendable (String) -> DBusValue? = TestObject.values,
        onSet: @escaping @Sendable (String, DBusValue) -> DBusError? = { _, _ in nil }
    ) {
        self.interfaces = interfaces
        self.onCall = onCall
        self.values = values
        self.onSet = onSet
    }

    static let standard = ExportedInterface(
        TestObject.interface,
        methods: [
            .init("Echo", "v", returns: "v", argumentNames: ["in", "out"]), .init("Fail"), .init("Forget"),
            .init("WrongAnswer", returns: "s"), .init("Hold"), .init("Open", "h", returns: "h"),
        ],
        signals: [.init("Ticked", "u")],
        properties: [
            .init("Name", "s"), .init("Level", "n", access: .readWrite), .init("Secret", "s", access: .write),
            .init("Absent", "u", emitsChange: .invalidates),
        ])

    static let echo: @Sendable (MethodCall) -> Void = { call in
        switch call.member {
        case "Echo", "Open": call.reply(call.arguments)
        case "Fail": call.fail(name: "org.example.Error.Broken", message: "broken as asked")
        case "WrongAnswer": call.reply([.uint32(1)])
        default: break
        }
    }

    static let values: @Sendable (String) -> DBusValue? = { name in
        switch name {
        case "Name": .string("one")
        case "Level": .int16(-7)
        default: nil
        }
    }

    func handle(_ call: MethodCall) { onCall(call) }

    func property(_ name: String, of interface: String) -> DBusValue? { values(name) }

    func setProperty(_ name: String, of interface: String, to value: DBusValue) -> DBusError? { onSet(name, value) }
}

/// Collects what handlers see, and lets a test wait for it.
final class Inbox<Element: Sendable>: Sendable {
    private let stream: AsyncStream<Element>
    private let writer: AsyncStream<Element>.Continuation

    init() {
        (stream, writer) = AsyncStream.makeStream(of: Element.self)
    }

    func put(_ element: Element) { writer.yield(element) }

    /// The next element.
    func next() async throws -> Element {
        for await element in stream { return element }
        throw CancellationError()
    }
}

/// The error that a closure throws; nil if it does not.
func failure<R>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws(DBusError) -> R
) async -> DBusError? {
    do throws(DBusError) {
        _ = try await body()
        return nil
    } catch {
        return error
    }
}
