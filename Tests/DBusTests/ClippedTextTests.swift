// SPDX-License-Identifier: MIT

import DBus
import Testing

@Suite struct ClippedTextTests {
    @Test(
        arguments: [
            ("short", 10, "short"), ("exactly", 7, "exactly"), ("one more", 7, "one mor"), ("äöü", 3, "ä"),
            ("äöü", 4, "äö"), ("a😀", 4, "a"), ("a😀", 5, "a😀"), ("😀", 0, ""), ("e\u{301}\u{301}", 3, "e\u{301}"),
        ] as [(String, Int, String)])
    func fitsTheBytesAndCutsBetweenScalars(text: String, limit: Int, clipped: String) {
        #expect(Array(text.clipped(toBytes: limit).utf8) == Array(clipped.utf8))
    }

    /// A character can have any number of bytes.
    @Test func theTextOfAPeersErrorIsBoundedInBytes() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        let text = "e" + String(repeating: "\u{301}", count: 100_000)
        let object = TestObject(onCall: { $0.fail(name: "org.example.Error.Long", message: text) })
        try await fixture.server.export(object, at: "/obj")
        let error = await failure { () throws(DBusError) in
            try await fixture.call("/obj", TestObject.interface, "Fail")
        }
        #expect(error?.name == "org.example.Error.Long")
        #expect((error?.message.utf8.count ?? .max) <= Limits.errorTextBytes)
    }
}
