// SPDX-License-Identifier: MIT

/// What a peer's introspection XML says: enough to see whether it has an interface, a member, a property.
public struct IntrospectedNode: Sendable, Hashable {
    public struct Interface: Sendable, Hashable {
        /// Names of methods with their input signatures.
        public internal(set) var methods: [String: String] = [:]
        public internal(set) var signals: Set<String> = []
        /// Names of properties with their signatures.
        public internal(set) var properties: [String: String] = [:]
    }

    public private(set) var interfaces: [String: Interface] = [:]
    /// Names of child nodes, relative.
    public private(set) var children: [String] = []

    /// Reads introspection XML.
    ///
    /// - Throws: ``DBusError/Code/invalidArgument`` for text that is no such XML,
    ///   ``DBusError/Code/limitExceeded`` over 1 MiB or 32 elements deep.
    public init(xml: String) throws(DBusError) {
        guard xml.utf8.count <= Limits.introspectionBytes else {
            throw DBusError(.limitExceeded, "introspection data over \(Limits.introspectionBytes) bytes")
        }
        var scanner = XMLScanner(xml)
        var open: [XMLScanner.Tag] = []
        var sawNode = false
        while let tag = try scanner.next() {
            if tag.kind == .close {
                guard open.popLast()?.name == tag.name else { throw XMLScanner.malformed }
                continue
            }
            guard open.count < Limits.introspectionDepth else {
                throw DBusError(.limitExceeded, "introspection data nested too deep")
            }
            if open.isEmpty {
                guard tag.name == "node", !sawNode else { throw XMLScanner.malformed }
                sawNode = true
            }
            note(tag, in: open)
            if tag.kind == .open { open.append(tag) }
        }
        guard open.isEmpty, sawNode else { throw XMLScanner.malformed }
    }

    private mutating func note(_ tag: XMLScanner.Tag, in open: [XMLScanner.Tag]) {
        let name = tag.attributes["name"]
        switch (open.count, tag.name) {
        case (1, "node"):
            if let name { children.append(name) }
        case (1, "interface"):
            if let name { interfaces[name, default: Interface()] = interfaces[name] ?? Interface() }
        case (2, _):
            guard open[1].name == "interface", let interface = open[1].attributes["name"], let name else { return }
            switch tag.name {
            case "method": interfaces[interface]?.methods[name] = ""
            case "signal": interfaces[interface]?.signals.insert(name)
            case "property": interfaces[interface]?.properties[name] = tag.attributes["type"] ?? ""
            default: break
            }
        case (3, "arg"):
            guard open[1].name == "interface", let interface = open[1].attributes["name"], open[2].name == "method",
                let method = open[2].attributes["name"], tag.attributes["direction"] ?? "in" == "in"
            else { return }
            interfaces[interface]?.methods[method, default: ""] += tag.attributes["type"] ?? ""
        default:
            break
        }
    }
}

/// Finds the tags of an XML text one after another; text, comments, declarations and instructions are skipped.
struct XMLScanner {
    struct Tag {
        enum Kind {
            case open, close, empty
        }

        let kind: Kind
        let name: String
        let attributes: [String: String]
    }

    static let malformed = DBusError(.invalidArgument, "introspection data is not well formed")

    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    mutating func next() throws(DBusError) -> Tag? {
        while let start = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
            position = start + 1
            if starts("!--") {
                try skip(past: "-->")
            } else if starts("!") || starts("?") {
                try skip(past: ">")
            } else {
                return try tag()
            }
        }
        return nil
    }

    private func starts(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { bytes[position...].starts(with: $0) }
    }

    private mutating func skip(past text: StaticString) throws(DBusError) {
        while position < bytes.count {
            if starts(text) {
                position += text.utf8CodeUnitCount
                return
            }
            position += 1
        }
        throw XMLScanner.malformed
    }

    private mutating func tag() throws(DBusError) -> Tag {
        if starts("/") {
            position += 1
            let name = word()
            skipSpace()
            guard !name.isEmpty, starts(">") else { throw XMLScanner.malformed }
            position += 1
            return Tag(kind: .close, name: name, attributes: [:])
        }
        let name = word()
        guard !name.isEmpty else { throw XMLScanner.malformed }
        var attributes: [String: String] = [:]
        while true {
            skipSpace()
            if starts("/>") {
                position += 2
                return Tag(kind: .empty, name: name, attributes: attributes)
            }
            if starts(">") {
                position += 1
                return Tag(kind: .open, name: name, attributes: attributes)
            }
            let key = word()
            skipSpace()
            guard !key.isEmpty, starts("=") else { throw XMLScanner.malformed }
            position += 1
            skipSpace()
            attributes[key] = try quoted()
        }
    }

    private mutating func quoted() throws(DBusError) -> String {
        guard starts("\"") || starts("'") else { throw XMLScanner.malformed }
        let quote = bytes[position]
        let start = position + 1
        guard let end = bytes[start...].firstIndex(of: quote) else { throw XMLScanner.malformed }
        position = end + 1
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    private mutating func word() -> String {
        let start = position
        while position < bytes.count, !XMLScanner.isDelimiter(bytes[position]) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func skipSpace() {
        while position < bytes.count, XMLScanner.isSpace(bytes[position]) { position += 1 }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\t")
            || byte == UInt8(ascii: "\r")
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        isSpace(byte) || "<>/=\"'".utf8.contains(byte)
    }
}
