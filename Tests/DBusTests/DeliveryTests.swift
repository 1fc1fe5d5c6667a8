// SPDX-License-Identifier: MIT

import Synchronization
import Testing

@testable import DBus

/// Anybody on the bus can send us a signal, and its body may become a million values: it is not read for a subscriber
/// whose rule the header alone does not match.
@Suite struct DeliveryTests {
    static let owner = ":1.5"
    static let body: [DBusValue] = [.string(TestObject.interface)]

    static func head(from sender: String, at path: ObjectPath = "/obj") -> DBusMessage {
        DBusMessage(
            kind: .signal, sender: sender, path: path, interface: TestObject.interface, member: "Ticked",
            signature: "s")
    }

    /// Delivers a message to subscribers with these rules, of whom those that name a service know its owner.
    ///
    /// - Returns: how often the body was read, and what each subscriber that was called has got.
    static func deliver(_ head: DBusMessage, to rules: [MatchRule]) -> (reads: Int, got: [Int: [DBusValue]]) {
        let got = Mutex<[Int: [DBusValue]]>([:])
        let subscriptions = rules.enumerated().map { index, rule in
            let subscription = Subscription(
                rule: rule, text: "", handler: { message in got.withLock { $0[index] = message.body } }, onEnd: nil)
            if let name = rule.wellKnownSender {
                subscription.sender = OwnerRecord(name: name)
                subscription.sender?.owner = owner
            }
            return subscription
        }
        var reads = 0
        Subscription.deliver(head, to: subscriptions) { () throws(DBusError) in
            reads += 1
            return body
        }
        return (reads, got.withLock { $0 })
    }

    @Test(arguments: [
        MatchRule(sender: owner, member: "Ticked"), MatchRule(sender: "org.example.Service", member: "Ticked"),
        MatchRule(sender: "org.freedesktop.DBus"), MatchRule(path: "/other"), MatchRule(pathNamespace: "/other"),
        MatchRule(interface: "a.b"), MatchRule(kind: .methodCall), MatchRule(sender: owner, arg0: TestObject.interface),
    ])
    func aStrangersBodyIsNotRead(_ rule: MatchRule) {
        let result = Self.deliver(Self.head(from: ":1.6"), to: [rule])
        #expect(result.reads == 0)
        #expect(result.got.isEmpty)
    }

    @Test func aBodyIsReadOnceForAllWhoWantIt() {
        let result = Self.deliver(
            Self.head(from: Self.owner),
            to: [
                MatchRule(sender: ":1.6"), MatchRule(sender: Self.owner), MatchRule(sender: "org.example.Service"),
                MatchRule(arg0: "a.b"), MatchRule(arg0: TestObject.interface), MatchRule(path: "/other"),
            ])
        #expect(result.reads == 1)
        #expect(result.got == [1: Self.body, 2: Self.body, 4: Self.body])
    }
}
