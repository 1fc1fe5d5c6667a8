// SPDX-License-Identifier: MIT

import DBus
import Testing

/// Our validators stand before libdbus's, which end the process: they may be stricter, never laxer.
@Suite struct NameTests {
    static let texts = [
        "", "a", "a.b", "a.b.c", "1a.b", "a.1b", ".a", "a.", "a..b", "a-b.c", "a.b-c", ":1.2", ":1", ":", ":a.b", ":.1",
        "org.bluez", "org.bluez.Adapter1", "ä.b", "a b.c", "_.a", "a/b", "/", "/a", "/a/", "//", "/a//b", "/a-b", "/ä",
        "/a/b_c/D9", "a\0.b", "/a\0", "y", "ay", "aay", "a{sv}", "a{vs}", "{sv}", "a{s}", "a{sss}", "a{sa{sv}}", "()",
        "(i)", "(i", "i)", "((i)(s))", "a", "aa", "ah", "r", "e", "z", "sss", "v", "a(", "a{(i)s}", "a{s}s",
        String(repeating: "a", count: 32) + "y", String(repeating: "a", count: 33) + "y",
        String(repeating: "(", count: 32) + "y" + String(repeating: ")", count: 32),
        String(repeating: "(", count: 33) + "y" + String(repeating: ")", count: 33),
        String(repeating: "s", count: 255), String(repeating: "s", count: 256),
        "a." + String(repeating: "b", count: 253), "a." + String(repeating: "b", count: 254),
        String(repeating: "a", count: 255), String(repeating: "a", count: 256),
        // One character, and two scalars.
        ":\u{301}1.2", ":\u{200D}a.b", "/\u{301}a", "a.\u{301}b", "a\u{301}.b",
    ]

    @Test(arguments: texts.filter { !$0.utf8.contains(0) })
    func agreeWithLibdbus(_ text: String) {
        #expect((Signature(validating: text) != nil) == Marshalling.acceptsSignature(text))
        #expect((ObjectPath(validating: text) != nil) == Marshalling.acceptsPath(text))
        // libdbus takes unique names that the specification does not, such as ":"; no bus gives them.
        if !text.hasPrefix(":") { #expect(Names.isBusName(text) == Marshalling.acceptsBusName(text)) }
        if Names.isBusName(text) { #expect(Marshalling.acceptsBusName(text)) }
        #expect(Names.isInterface(text) == Marshalling.acceptsInterface(text))
        #expect(Names.isMember(text) == Marshalling.acceptsMember(text))
    }

    @Test func agreeWithLibdbusOnRandomText() {
        var numbers = Numbers(state: 7)
        let alphabet = Array("abyv(){}sa.:/_-1")
        for _ in 0..<20_000 {
            let text = String(
                (0..<Int.random(in: 0...9, using: &numbers)).map { _ in
                    alphabet[Int.random(in: 0..<alphabet.count, using: &numbers)]
                })
            agreeWithLibdbus(text)
        }
    }

    @Test(arguments: texts.filter { $0.utf8.contains(0) })
    func textWithNULIsNoName(_ text: String) {
        #expect(Signature(validating: text) == nil)
        #expect(ObjectPath(validating: text) == nil)
        #expect(!Names.isBusName(text) && !Names.isInterface(text) && !Names.isMember(text))
    }

    @Test func pathsKnowTheirPlace() throws {
        let path: ObjectPath = "/org/bluez/hci0"
        #expect(path.parent == "/org/bluez")
        #expect(path.lastElement == "hci0")
        #expect(ObjectPath.root.parent == nil)
        #expect(ObjectPath("/a").parent == .root)
        #expect(path.isBeneath("/org") && path.isBeneath("/") && !path.isBeneath(path) && !path.isBeneath("/org/blue"))
        #expect(!ObjectPath.root.isBeneath("/"))
        #expect(path.appending("dev_1") == "/org/bluez/hci0/dev_1")
        #expect(path.appending("a/b") == nil && path.appending("") == nil)
        #expect(ObjectPath.root.appending(escaping: "a-b ü")?.string == "/a_2db_20_c3_bc")
        #expect(ObjectPath.root.appending(escaping: "")?.string == "/_")
    }

    @Test func signaturesFallApartIntoTypes() {
        #expect(Signature("sa{sv}(iau)v").types == ["s", "a{sv}", "(iau)", "v"])
        #expect(Signature("").types.isEmpty)
    }
}

@Suite struct MatchRuleTests {
    @Test func textIsWhatTheBusReads() throws {
        let rule = MatchRule(
            sender: "org.bluez", path: "/a", interface: "a.b", member: "C", arg0: "it's")
        #expect(
            try rule.text()
                == #"type='signal',sender='org.bluez',path='/a',interface='a.b',member='C',arg0='it'\''s'"#)
        #expect(try MatchRule(kind: nil).text() == "")
        // The apostrophe is not a character of its own here.
        #expect(
            try MatchRule(kind: nil, arg0: "it'\u{301}s").text().unicodeScalars.elementsEqual(
                "arg0='it'\\''\u{301}s'".unicodeScalars))
    }

    @Test(arguments: [
        MatchRule(sender: "x"), MatchRule(path: "/", pathNamespace: "/"), MatchRule(interface: "x"),
        MatchRule(member: "a.b"), MatchRule(arg0: "a\0"), MatchRule(arg0Namespace: "a..b"),
        MatchRule(arg0: String(repeating: "x", count: 1024)),
    ])
    func wrongRulesAreRefused(_ rule: MatchRule) {
        #expect { try rule.text() } throws: { ($0 as? DBusError)?.code == .invalidArgument }
    }

    static let message = DBusMessage(
        kind: .signal, sender: ":1.5", path: "/org/bluez/hci0", interface: "a.b", member: "C",
        body: [.string("org.example.Foo")])

    @Test(arguments: [
        MatchRule(), MatchRule(kind: nil), MatchRule(sender: ":1.5"), MatchRule(path: "/org/bluez/hci0"),
        MatchRule(pathNamespace: "/org/bluez"), MatchRule(pathNamespace: "/"), MatchRule(interface: "a.b", member: "C"),
        MatchRule(arg0: "org.example.Foo"), MatchRule(arg0Namespace: "org.example"),
        MatchRule(arg0Namespace: "org.example.Foo"), MatchRule(sender: "org.bluez"),
    ])
    func matches(_ rule: MatchRule) {
        #expect(rule.matches(MatchRuleTests.message, senderOwner: ":1.5"))
    }

    @Test(arguments: [
        MatchRule(kind: .methodCall), MatchRule(sender: ":1.6"), MatchRule(path: "/org/bluez"),
        MatchRule(pathNamespace: "/org/blue"), MatchRule(interface: "a.c"), MatchRule(member: "D"),
        MatchRule(arg0: "org.example"), MatchRule(arg0Namespace: "org.exam"), MatchRule(sender: "org.bluez"),
    ])
    func doesNotMatch(_ rule: MatchRule) {
        #expect(!rule.matches(MatchRuleTests.message, senderOwner: ":1.7"))
        #expect(!rule.matches(MatchRuleTests.message, senderOwner: nil))
    }
}
