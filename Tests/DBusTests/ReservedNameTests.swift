// SPDX-License-Identifier: MIT

import Testing

@testable import DBus

/// The specification reserves a path and an interface for what a library tells its own program, and a bus ends the
/// connection that sends them, or what begins with them. Others choose paths for us: bluetoothd calls an application
/// back at the one that it names.
@Suite(.timeLimit(.minutes(1)))
struct ReservedNameTests {
    static let names: [(ObjectPath, String)] = [
        ("/org/freedesktop/DBus/Local", TestObject.interface), ("/obj", "org.freedesktop.DBus.Local"),
        ("/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local"),
        ("/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Peer"),
        ("/org/freedesktop/DBus/Local/a", TestObject.interface), ("/org/freedesktop/DBus/Locals", TestObject.interface),
        ("/obj", "org.freedesktop.DBus.Local.A"), ("/obj", "org.freedesktop.DBus.Locals"),
    ]

    @Test(arguments: names, BusLimitTests.Way.allCases)
    func areNotSent(_ names: (ObjectPath, String), _ way: BusLimitTests.Way) async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let error = try await BusLimitTests.send([], way, names.0, names.1, in: fixture)
        #expect(error?.code == .invalidArgument)
        #expect(error?.advice != nil)
        try await fixture.ping()
    }

    @Test func areNotExported() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let (server, path) = (fixture.server, ObjectPath("/org/freedesktop/DBus/Local"))
        let reserved = TestObject(interfaces: [ExportedInterface("org.freedesktop.DBus.Local")])
        let errors = await [
            failure { () throws(DBusError) in try await server.export(TestObject(), at: path) },
            failure { () throws(DBusError) in try await server.export(reserved, at: "/obj") },
            failure { () throws(DBusError) in try await server.exportObjectManager(at: path) },
            failure { () throws(DBusError) in
                try await server.emitPropertiesChanged(path, TestObject.interface, changed: [])
            },
        ]
        #expect(errors.map { $0?.code } == [.invalidArgument, .invalidArgument, .invalidArgument, .invalidArgument])
        try await fixture.ping()
    }

    @Test(arguments: [
        ("/org/freedesktop/DBus", "org.freedesktop.DBus.Loca"), ("/org/freedesktop/DBus/Loca", "a.b"),
        ("/a/org/freedesktop/DBus/Local", "a.org.freedesktop.DBus.Local"),
    ])
    func theirNeighboursAreFree(_ path: String, _ interface: String) async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let path = try #require(ObjectPath(validating: path))
        try await fixture.client.emitSignal(path, interface, "Ticked")
        _ = try await fixture.call(path, "org.freedesktop.DBus.Peer", "Ping")
    }
}
