// SPDX-License-Identifier: MIT

import DBus
import Testing

@Suite struct ObjectTests {
    static let properties = "org.freedesktop.DBus.Properties"
    static let objectManager = "org.freedesktop.DBus.ObjectManager"

    @Test func propertiesAreReadAndWritten() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let inbox = Inbox<DBusValue>()
        try await fixture.server.export(
            TestObject(onSet: { name, value in
                guard value != .int16(0) else { return DBusError(name: "org.example.Error.Zero", message: "not zero") }
                inbox.put(value)
                return nil
            }), at: "/obj")
        func call(_ member: String, _ body: [DBusValue]) async throws(DBusError) -> [DBusValue] {
            try await fixture.call("/obj", ObjectTests.properties, member, body)
        }
        let interface = DBusValue.string(TestObject.interface)
        #expect(try await call("Get", [interface, .string("Name")]) == [.variant(.string("one"))])
        #expect(
            try await call("GetAll", [interface]).first?.asDictionary == ["Name": .string("one"), "Level": .int16(-7)])
        #expect(try await call("Set", [interface, .string("Level"), .variant(.int16(4))]) == [])
        #expect(try await inbox.next() == .int16(4))
        let wrong: [(String, [DBusValue], String)] = [
            ("Get", [interface, .string("Absent")], ErrorName.unknownProperty),
            ("Get", [interface, .string("Nothing")], ErrorName.unknownProperty),
            ("Get", [interface, .string("Secret")], ErrorName.unknownProperty),
            ("Get", [.string("a.b"), .string("Name")], ErrorName.unknownInterface),
            ("GetAll", [.string("a.b")], ErrorName.unknownInterface),
            ("Set", [interface, .string("Name"), .variant(.string("x"))], ErrorName.propertyReadOnly),
            ("Set", [interface, .string("Level"), .variant(.string("x"))], ErrorName.invalidArguments),
            ("Set", [interface, .string("Level"), .variant(.int16(0))], "org.example.Error.Zero"),
        ]
        for (member, body, name) in wrong {
            let error = await failure { () throws(DBusError) in try await call(member, body) }
            #expect(error?.name == name)
        }
    }

    @Test func aPropertyOfTheWrongTypeIsAnError() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(values: { _ in .uint64(1) }), at: "/obj")
        let error = await failure { () throws(DBusError) in
            try await fixture.call("/obj", ObjectTests.properties, "GetAll", [.string(TestObject.interface)])
        }
        #expect(error?.name == ErrorName.failed)
    }

    @Test func changesAreSignalled() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let inbox = Inbox<DBusMessage>()
        let rule = MatchRule.propertiesChanged(
            sender: fixture.server.uniqueName, path: "/obj", interface: TestObject.interface)
        _ = try await fixture.client.addMatch(rule) { inbox.put($0) }
        try await fixture.server.emitPropertiesChanged(
            "/obj", TestObject.interface, changed: [("Level", .int16(1))], invalidated: ["Absent"])
        let message = try await inbox.next()
        #expect(message.signature == "sa{sv}as")
        #expect(message.body[1].asDictionary == ["Level": .int16(1)])
        #expect(message.body[2].asStrings == ["Absent"])
    }

    @Test func managedObjectsAreListedAndAnnounced() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let inbox = Inbox<DBusMessage>()
        let rule = MatchRule(sender: fixture.server.uniqueName, path: "/app", interface: ObjectTests.objectManager)
        _ = try await fixture.client.addMatch(rule) { inbox.put($0) }
        try await fixture.server.exportObjectManager(at: "/app")
        try await fixture.server.export(TestObject(), at: "/app/service0")
        try await fixture.server.export(TestObject(), at: "/apple")
        let added = try await inbox.next()
        #expect(added.member == "InterfacesAdded" && added.signature == "oa{sa{sv}}")
        #expect(added.body[0].asObjectPath == "/app/service0")
        let properties: [String: [String: DBusValue]] = [
            TestObject.interface: ["Name": .string("one"), "Level": .int16(-7)]
        ]
        #expect(added.body[1].asInterfaces == properties)
        let managed = try await fixture.call(
            "/app", ObjectTests.objectManager, "GetManagedObjects", returning: "a{oa{sa{sv}}}")
        #expect(managed.first?.asManagedObjects == ["/app/service0": properties])
        await fixture.server.unexport("/app/service0")
        let removed = try await inbox.next()
        #expect(removed.member == "InterfacesRemoved")
        #expect(removed.body == [.objectPath("/app/service0"), .strings([TestObject.interface])])
        let empty = try await fixture.call("/app", ObjectTests.objectManager, "GetManagedObjects")
        #expect(empty.first?.asManagedObjects?.isEmpty == true)
    }

    @Test func introspectionTellsWhatIsThere() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.exportObjectManager(at: "/app")
        try await fixture.server.export(TestObject(), at: "/app/a/b")
        func introspect(_ path: ObjectPath) async throws -> IntrospectedNode {
            let xml = try await fixture.call(path, "org.freedesktop.DBus.Introspectable", "Introspect", returning: "s")
            return try IntrospectedNode(xml: xml.first?.asString ?? "")
        }
        #expect(try await introspect("/").children == ["app"])
        let app = try await introspect("/app")
        #expect(app.children == ["a"])
        #expect(app.interfaces[ObjectTests.objectManager]?.signals == ["InterfacesAdded", "InterfacesRemoved"])
        let object = try await introspect("/app/a/b")
        let interface = try #require(object.interfaces[TestObject.interface])
        #expect(interface.methods["Echo"] == "v" && interface.methods["Open"] == "h" && interface.methods.count == 6)
        #expect(interface.signals == ["Ticked"])
        #expect(interface.properties == ["Name": "s", "Level": "n", "Secret": "s", "Absent": "u"])
        #expect(object.interfaces[ObjectTests.properties]?.methods["Set"] == "ssv")
    }

    @Test(arguments: [
        "", "<a/>", "<node>", "</node>", "<node></x>", "<node/><node/>", "<node name=x/>", "<!--", "<node",
    ])
    func malformedIntrospectionIsRefused(_ xml: String) {
        #expect { try IntrospectedNode(xml: xml) } throws: { ($0 as? DBusError)?.code == .invalidArgument }
    }

    @Test func introspectionIsBounded() {
        let deep = String(repeating: "<node>", count: 40)
        let long = "<node>" + String(repeating: " ", count: 1 << 20) + "</node>"
        for xml in [deep, long] {
            #expect { try IntrospectedNode(xml: xml) } throws: { ($0 as? DBusError)?.code == .limitExceeded }
        }
    }

    @Test func exportsAreChecked() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let server = fixture.server
        try await server.export(TestObject(), at: "/obj")
        let wrong = [
            ExportedInterface("x"), ExportedInterface(ObjectTests.properties),
            ExportedInterface("a.b", methods: [.init("a.b")]), ExportedInterface("a.b", properties: [.init("P", "ss")]),
        ]
        var errors = [await failure { () throws(DBusError) in try await server.export(TestObject(), at: "/obj") }]
        for interface in wrong {
            errors.append(
                await failure { () throws(DBusError) in
                    try await server.export(TestObject(interfaces: [interface]), at: "/other")
                })
        }
        #expect(errors.allSatisfy { $0?.code == .invalidArgument })
    }

    @Test func peersArePinged() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.ping()
        let id = try? await fixture.call("/", "org.freedesktop.DBus.Peer", "GetMachineId", returning: "s")
        #expect(id == nil || id?.first?.asString?.utf8.count == 32)
    }
}
