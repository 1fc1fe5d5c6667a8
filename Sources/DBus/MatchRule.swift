// SPDX-License-Identifier: MIT

/// Which messages a subscriber wants. Parts that are nil match everything.
///
/// Source: D-Bus specification, "Match Rules". A rule is checked twice: by the bus, which sends what matches any rule
/// of this connection, and here, so that a subscriber sees what matches its own. A sender that is a well-known name is
/// compared with the name's present owner, so nobody else can pretend to be it.
public struct MatchRule: Sendable, Hashable {
    public var kind: DBusMessage.Kind?
    public var sender: String?
    public var path: ObjectPath?
    /// This path and everything beneath it. Not together with ``path``.
    public var pathNamespace: ObjectPath?
    public var interface: String?
    public var member: String?
    /// The first argument, a string.
    public var arg0: String?
    /// The first argument, a name: this one or one beneath it (`org.example` matches `org.example.Foo`).
    public var arg0Namespace: String?

    public init(
        kind: DBusMessage.Kind? = .signal,
        sender: String? = nil,
        path: ObjectPath? = nil,
        pathNamespace: ObjectPath? = nil,
        interface: String? = nil,
        member: String? = nil,
        arg0: String? = nil,
        arg0Namespace: String? = nil
    ) {
        self.kind = kind
        self.sender = sender
        self.path = path
        self.pathNamespace = pathNamespace
        self.interface = interface
        self.member = member
        self.arg0 = arg0
        self.arg0Namespace = arg0Namespace
    }

    /// `PropertiesChanged` signals.
    public static func propertiesChanged(
        sender: String?, path: ObjectPath? = nil, pathNamespace: ObjectPath? = nil, interface: String? = nil
    ) -> MatchRule {
        MatchRule(
            sender: sender, path: path, pathNamespace: pathNamespace, interface: "org.freedesktop.DBus.Properties",
            member: "PropertiesChanged", arg0: interface)
    }
}

extension MatchRule {
    /// The rule as the bus reads it.
    ///
    /// - Throws: ``DBusError/Code/invalidArgument`` for names that D-Bus does not allow.
    package func text() throws(DBusError) -> String {
        try check()
        var parts: [String] = []
        func add(_ key: String, _ value: String?) {
            if let value { parts.append("\(key)='\(MatchRule.escaped(value))'") }
        }
        add("type", kind.map { MatchRule.kindName($0) })
        add("sender", sender)
        add("path", path?.string)
        add("path_namespace", pathNamespace?.string)
        add("interface", interface)
        add("member", member)
        add("arg0", arg0)
        add("arg0namespace", arg0Namespace)
        let text = parts.joined(separator: ",")
        guard text.utf8.count <= Limits.matchRuleBytes else {
            throw DBusError(.invalidArgument, "the match rule has \(text.utf8.count) bytes, over 1024")
        }
        return text
    }

    private func check() throws(DBusError) {
        func refuse(_ what: String, _ value: String) -> DBusError {
            DBusError(.invalidArgument, "match rule: not a valid \(what): \(value)")
        }
        if let sender, !Names.isBusName(sender) { throw refuse("sender", sender) }
        if let interface, !Names.isInterface(interface) { throw refuse("interface", interface) }
        if let member, !Names.isMember(member) { throw refuse("member", member) }
        if let arg0, arg0.utf8.contains(0) { throw refuse("arg0", "text with a NUL") }
        if let arg0Namespace, !Names.isInterface("\(arg0Namespace).a") { throw refuse("arg0namespace", arg0Namespace) }
        if path != nil, let pathNamespace { throw refuse("combination with a path", pathNamespace.string) }
    }

    /// An apostrophe ends the quotes, stands escaped, and opens them again; nothing else is special inside them.
    private static func escaped(_ value: String) -> String {
        guard value.utf8.contains(UInt8(ascii: "'")) else { return value }
        // By scalars: with a combining mark behind it, an apostrophe is part of another character.
        return value.unicodeScalars.split(separator: "'", omittingEmptySubsequences: false).map(String.init)
            .joined(separator: "'\\''")
    }

    private static func kindName(_ kind: DBusMessage.Kind) -> String {
        switch kind {
        case .methodCall: "method_call"
        case .methodReturn: "method_return"
        case .error: "error"
        case .signal: "signal"
        }
    }

    /// Whether a message matches.
    ///
    /// - Parameter owner: the unique name that owns ``sender`` now, if that is a well-known name.
    package func matches(_ message: DBusMessage, senderOwner owner: String?) -> Bool {
        matchesHead(of: message, senderOwner: owner) && matchesArguments(message.body)
    }

    /// Whether all but the arguments match.
    func matchesHead(of message: DBusMessage, senderOwner owner: String?) -> Bool {
        if let kind, message.kind != kind { return false }
        if let member, message.member != member { return false }
        if let interface, message.interface != interface { return false }
        if let path, message.path != path { return false }
        if let sender, message.sender != sender {
            guard let owner, message.sender == owner else { return false }
        }
        if let pathNamespace {
            guard let path = message.path, path == pathNamespace || path.isBeneath(pathNamespace) else { return false }
        }
        return true
    }

    func matchesArguments(_ body: [DBusValue]) -> Bool {
        guard arg0 != nil || arg0Namespace != nil else { return true }
        guard case .string(let first)? = body.first else { return false }
        if let arg0, first != arg0 { return false }
        if let arg0Namespace, first != arg0Namespace, !first.hasPrefix("\(arg0Namespace).") { return false }
        return true
    }
}
