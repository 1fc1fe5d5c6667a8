// SPDX-License-Identifier: MIT

/// A JSON object that keeps its order. Keys are compared as UTF-8 bytes; equality includes the order.
public struct JSONObject: Sendable {
    public typealias Element = (key: String, value: JSONValue)

    private var entries: [Entry]
    /// Positions by key, kept only past a handful of keys: a search of the array is cheaper before.
    private var index: [UTF8Key: Int]?

    private struct Entry: Hashable, Sendable {
        var key: UTF8Key
        var value: JSONValue
    }

    private static let indexedFrom = 9

    public init() {
        entries = []
    }

    /// The first of duplicate keys wins.
    public init(_ elements: some Sequence<(String, JSONValue)>) {
        self.init()
        for (key, value) in elements {
            insertIfAbsent(key, value)
        }
    }

    public var count: Int { entries.count }

    public var isEmpty: Bool { entries.isEmpty }

    public var keys: [String] { entries.map(\.key.text) }

    /// The value of a key. Setting nil removes the key, `.null` stores a null; a new key goes to the end.
    public subscript(key: String) -> JSONValue? {
        get { position(of: UTF8Key(key)).map { entries[$0].value } }
        set {
            let wanted = UTF8Key(key)
            switch (position(of: wanted), newValue) {
            case (let position?, let value?):
                entries[position].value = value
            case (let position?, nil):
                entries.remove(at: position)
                index = nil
                if entries.count >= Self.indexedFrom { buildIndex() }
            case (nil, let value?):
                append(wanted, value)
            case (nil, nil):
                break
            }
        }
    }

    /// Adds a pair unless its key is there already.
    ///
    /// - Returns: whether it was added.
    @discardableResult
    public mutating func insertIfAbsent(_ key: String, _ value: JSONValue) -> Bool {
        let wanted = UTF8Key(key)
        guard position(of: wanted) == nil else { return false }
        append(wanted, value)
        return true
    }

    public func string(_ key: String) -> String? { self[key]?.string }
    public func int(_ key: String) -> Int? { self[key]?.int }
    public func bool(_ key: String) -> Bool? { self[key]?.bool }
    public func double(_ key: String) -> Double? { self[key]?.double }
    public func array(_ key: String) -> [JSONValue]? { self[key]?.array }
    public func object(_ key: String) -> JSONObject? { self[key]?.object }

    /// The value of a key, where null reads as absent.
    package func present(_ key: String) -> JSONValue? {
        guard let value = self[key], !value.isNull else { return nil }
        return value
    }

    private func position(of key: UTF8Key) -> Int? {
        if let index { return index[key] }
        return entries.firstIndex { $0.key == key }
    }

    private mutating func append(_ key: UTF8Key, _ value: JSONValue) {
        entries.append(Entry(key: key, value: value))
        if index != nil {
            index?[key] = entries.count - 1
        } else if entries.count >= Self.indexedFrom {
            buildIndex()
        }
    }

    private mutating func buildIndex() {
        var positions = [UTF8Key: Int](minimumCapacity: entries.count * 2)
        for (position, entry) in entries.enumerated() {
            positions[entry.key] = position
        }
        index = positions
    }
}

extension JSONObject: Hashable {
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.entries == right.entries
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(entries)
    }
}

extension JSONObject: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { entries.count }

    public subscript(position: Int) -> Element {
        (entries[position].key.text, entries[position].value)
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self.init(elements)
    }
}

/// A text that is equal to another only if its UTF-8 bytes are: Swift's own equality is canonical equivalence.
package struct UTF8Key: Hashable, Sendable {
    var text: String

    package init(_ text: String) {
        self.text = text
    }

    package static func == (left: UTF8Key, right: UTF8Key) -> Bool {
        left.text.hasSameBytes(as: right.text)
    }

    package func hash(into hasher: inout Hasher) {
        var copy = text
        copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xFF as UInt8)
    }
}

extension String {
    package func hasSameBytes(as other: String) -> Bool {
        utf8.elementsEqual(other.utf8)
    }
}
