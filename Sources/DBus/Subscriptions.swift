// SPDX-License-Identifier: MIT

import CDBus

/// One subscriber of messages. Touched on the loop only.
final class Subscription {
    let rule: MatchRule
    let text: String
    let handler: @Sendable (DBusMessage) -> Void
    /// Called when the connection ends.
    let onEnd: (@Sendable () -> Void)?
    var isActive = true
    /// What the bus was asked for.
    var match: BusMatch?
    /// The owner of the rule's sender, if that is a well-known name.
    var sender: OwnerRecord?
    /// Why the owner cannot be known.
    var failure: DBusError?

    init(
        rule: MatchRule, text: String, handler: @escaping @Sendable (DBusMessage) -> Void,
        onEnd: (@Sendable () -> Void)?
    ) {
        self.rule = rule
        self.text = text
        self.handler = handler
        self.onEnd = onEnd
    }

    /// Hands a message to those of some subscribers whose rule it matches.
    ///
    /// The body is read when there is one whom the header is for: anybody on the bus can send us what matches all of a
    /// rule but its sender, and a body may become a million values. One that cannot be read reaches nobody.
    ///
    /// - Parameter head: the message without its body.
    static func deliver(
        _ head: DBusMessage, to candidates: [Subscription], reading body: () throws(DBusError) -> [DBusValue]
    ) {
        var message = head
        var isRead = false
        for subscription in candidates
        where subscription.isActive
            && subscription.rule.matchesHead(of: head, senderOwner: subscription.sender?.owner)
        {
            if !isRead {
                guard let values = try? body() else { return }
                message.body = values
                isRead = true
            }
            if subscription.rule.matchesArguments(message.body) { subscription.handler(message) }
        }
    }
}

/// Subscribers by the member they want, so that a message meets few of them.
struct SubscriptionTable {
    private(set) var count = 0
    private var byMember: [String: [Subscription]] = [:]
    private var anyMember: [Subscription] = []

    var all: [Subscription] { byMember.values.flatMap { $0 } + anyMember }

    mutating func insert(_ subscription: Subscription) {
        count += 1
        if let member = subscription.rule.member {
            byMember[member, default: []].append(subscription)
        } else {
            anyMember.append(subscription)
        }
    }

    /// Takes out a subscription that is in.
    mutating func remove(_ subscription: Subscription) {
        count -= 1
        if let member = subscription.rule.member {
            byMember[member]?.removeAll { $0 === subscription }
            if byMember[member]?.isEmpty == true { byMember[member] = nil }
        } else {
            anyMember.removeAll { $0 === subscription }
        }
    }

    func candidates(member: String?) -> [Subscription] {
        guard let member, let some = byMember[member] else { return anyMember }
        return anyMember.isEmpty ? some : some + anyMember
    }
}

/// A rule that the bus knows, shared by every subscriber with the same text. Touched on the loop only.
final class BusMatch {
    var users = 0
    var isConfirmed = false
    var waiting: [@Sendable (Result<Void, DBusError>) -> Void] = []
}

extension ConnectionCore {
    /// Subscribes. The completion has the bus's answer, and is called on the loop.
    func subscribe(
        _ rule: MatchRule,
        handler: @escaping @Sendable (DBusMessage) -> Void,
        onEnd: (@Sendable () -> Void)? = nil,
        completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
    ) -> MatchToken {
        assert(loop.isCurrent)
        do throws(DBusError) {
            guard ended == nil else { throw ended ?? .connectionLost }
            guard subscriptions.count < Limits.matches else {
                throw DBusError(.limitExceeded, "more than \(Limits.matches) subscriptions")
            }
            let subscription = Subscription(rule: rule, text: try rule.text(), handler: handler, onEnd: onEnd)
            subscriptions.insert(subscription)
            let box = LoopConfined(subscription)
            let token = MatchToken { [weak self] in self?.onLoop { $0.unsubscribe(box.value) } }
            // Asked before the match, so that the owner is known when the first message arrives.
            if let name = rule.wellKnownSender {
                subscription.sender = track(name) { result in
                    if case .failure(let error) = result { box.value.failure = error }
                }
            }
            addBusMatch(subscription) { [weak self] result in
                let error = box.value.failure
                let result = error.map { .failure($0) } ?? result
                if case .failure = result { self?.unsubscribe(box.value) }
                completion(result)
            }
            return token
        } catch {
            completion(.failure(error))
            return MatchToken {}
        }
    }

    private func addBusMatch(
        _ subscription: Subscription, _ completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
    ) {
        let text = subscription.text
        if let match = busMatches[text] {
            match.users += 1
            subscription.match = match
            if match.isConfirmed { completion(.success(())) } else { match.waiting.append(completion) }
            return
        }
        let match = BusMatch()
        match.users = 1
        match.waiting = [completion]
        subscription.match = match
        busMatches[text] = match
        let box = LoopConfined(match)
        callBus("AddMatch", [.string(text)], returning: "") { [weak self] result in
            let match = box.value
            match.isConfirmed = true
            // First, so that whoever is told and asks again, asks the bus.
            if case .failure = result { self?.removeBusMatch(match, text) }
            let waiting = match.waiting
            match.waiting = []
            for entry in waiting { entry(result.map { _ in () }) }
        }
    }

    func unsubscribe(_ subscription: Subscription) {
        guard subscription.isActive else { return }
        subscription.isActive = false
        subscriptions.remove(subscription)
        if let record = subscription.sender { untrack(record) }
        guard let match = subscription.match else { return }
        match.users -= 1
        if match.users == 0 { removeBusMatch(match, subscription.text) }
    }

    /// Also one that was refused: if the bus was only late, it has it.
    private func removeBusMatch(_ match: BusMatch, _ text: String) {
        guard busMatches[text] === match else { return }
        busMatches[text] = nil
        // Nothing can be done if it fails: then messages come that nobody wants.
        try? sendWithoutReply(
            DBusCall(
                StandardInterface.bus, StandardInterface.busPath, StandardInterface.bus, "RemoveMatch",
                [.string(text)]))
    }

    func endSubscriptions() {
        let all = subscriptions.all
        subscriptions = SubscriptionTable()
        busMatches = [:]
        for record in owners.values { record.release() }
        owners = [:]
        for subscription in all where subscription.isActive {
            subscription.isActive = false
            subscription.onEnd?()
        }
    }

    func receiveForSubscriptions(_ raw: OpaquePointer) {
        guard subscriptions.count > 0 else { return }
        let candidates = subscriptions.candidates(member: MessageReader.text(dbus_message_get_member(raw)))
        guard !candidates.isEmpty else { return }
        Subscription.deliver(MessageReader.head(raw), to: candidates) { () throws(DBusError) in
            try MessageReader.body(of: raw)
        }
    }

    /// Runs a closure on the loop: at once if this is it.
    func onLoop(_ body: @escaping @Sendable (ConnectionCore) -> Void) {
        if loop.isCurrent {
            body(self)
        } else {
            loop.execute { body(self) }
        }
    }
}

extension MatchRule {
    /// The sender if its owner has to be known to compare. The bus itself is its own owner.
    var wellKnownSender: String? {
        guard let sender, sender != StandardInterface.bus, sender.utf8.first != UInt8(ascii: ":") else { return nil }
        return sender
    }
}

/// Carries something that belongs to the loop through a `@Sendable` closure that runs on the loop.
///
/// `@unchecked Sendable`: `value` is read on the loop's thread only.
struct LoopConfined<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
