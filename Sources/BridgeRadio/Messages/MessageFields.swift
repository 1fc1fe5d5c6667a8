// SPDX-License-Identifier: MIT

import BluetoothLE
import JSON

/// Why a line of the bridge protocol is no message.
package struct BridgeMessageError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: String, Sendable, Hashable {
        /// Not JSON, or no object.
        case notJSON
        /// Neither a command nor an event, or one that we do not know.
        case unknown
        /// A field is missing, has the wrong type, or is out of its bounds.
        case badField
    }

    package let code: Code
    package let message: String
    /// The message's own id, as far as it could be read, so that the answer can carry it.
    package var id: String?
    package var command: String?

    package var description: String { message }
}

/// Reads the fields of one message, each with its bounds.
struct MessageFields {
    let object: JSONObject

    /// A key whose value is null reads as absent.
    func value(_ key: String) -> JSONValue? { object.present(key) }

    private func bad(_ key: String, _ what: String) -> BridgeMessageError {
        BridgeMessageError(code: .badField, message: "“\(key)” \(what)")
    }

    func optionalText(_ key: String, _ limit: Int = BridgeLimits.textBytes) throws(BridgeMessageError) -> String? {
        guard let value = value(key) else { return nil }
        guard let text = value.string else { throw bad(key, "is no string") }
        guard text.utf8.count <= limit else { throw bad(key, "is longer than \(limit) bytes") }
        return text
    }

    func text(_ key: String, _ limit: Int = BridgeLimits.textBytes) throws(BridgeMessageError) -> String {
        guard let text = try optionalText(key, limit) else { throw bad(key, "is missing") }
        return text
    }

    func optionalInteger(_ key: String, _ range: ClosedRange<Int>) throws(BridgeMessageError) -> Int? {
        guard let value = value(key) else { return nil }
        guard let number = value.int, range.contains(number) else {
            throw bad(key, "is no whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func integer(_ key: String, _ range: ClosedRange<Int>) throws(BridgeMessageError) -> Int {
        guard let number = try optionalInteger(key, range) else { throw bad(key, "is missing") }
        return number
    }

    func flag(_ key: String, default fallback: Bool? = nil) throws(BridgeMessageError) -> Bool {
        guard let value = value(key) else {
            guard let fallback else { throw bad(key, "is missing") }
            return fallback
        }
        guard let flag = value.bool else { throw bad(key, "is neither true nor false") }
        return flag
    }

    func optionalUUID(_ key: String) throws(BridgeMessageError) -> BluetoothUUID? {
        guard let text = try optionalText(key) else { return nil }
        guard let uuid = BluetoothUUID(text) else { throw bad(key, "is no UUID") }
        return uuid
    }

    func uuid(_ key: String) throws(BridgeMessageError) -> BluetoothUUID {
        guard let uuid = try optionalUUID(key) else { throw bad(key, "is missing") }
        return uuid
    }

    /// Absent reads as empty.
    func uuids(_ key: String) throws(BridgeMessageError) -> [BluetoothUUID] {
        try list(key, BridgeLimits.uuids).map { value throws(BridgeMessageError) in
            guard let uuid = value.string.flatMap(BluetoothUUID.init) else { throw bad(key, "holds what is no UUID") }
            return uuid
        }
    }

    func texts(_ key: String) throws(BridgeMessageError) -> [String] {
        try list(key, BridgeLimits.listItems).map { value throws(BridgeMessageError) in
            guard let text = value.string else { throw bad(key, "holds what is no string") }
            return text
        }
    }

    func list(_ key: String, _ limit: Int) throws(BridgeMessageError) -> [JSONValue] {
        guard let value = value(key) else { return [] }
        guard let list = value.array else { throw bad(key, "is no list") }
        guard list.count <= limit else { throw bad(key, "holds more than \(limit)") }
        return list
    }

    func objects(_ key: String, _ limit: Int) throws(BridgeMessageError) -> [MessageFields] {
        try list(key, limit).map { value throws(BridgeMessageError) in
            guard let object = value.object else { throw bad(key, "holds what is no object") }
            return MessageFields(object: object)
        }
    }

    /// Absent reads as nil; an attribute's value has at most 512 bytes.
    func optionalBytes(_ key: String, _ limit: Int = BridgeLimits.valueBytes) throws(BridgeMessageError) -> [UInt8]? {
        guard let value = value(key) else { return nil }
        guard let text = value.string, let bytes = Base64.decode(text) else { throw bad(key, "is no base64") }
        guard bytes.count <= limit else { throw bad(key, "holds more than \(limit) bytes") }
        return bytes
    }

    func bytes(_ key: String, _ limit: Int = BridgeLimits.valueBytes) throws(BridgeMessageError) -> [UInt8] {
        guard let bytes = try optionalBytes(key, limit) else { throw bad(key, "is missing") }
        return bytes
    }

    /// A map of keys to base64 data, as in an advertisement.
    func data<Key: Hashable>(
        _ key: String,
        _ read: (String) -> Key?
    ) throws(BridgeMessageError) -> [Key: [UInt8]] {
        guard let value = value(key) else { return [:] }
        guard let object = value.object else { throw bad(key, "is no object") }
        guard object.count <= BridgeLimits.uuids else { throw bad(key, "holds more than \(BridgeLimits.uuids)") }
        var result: [Key: [UInt8]] = [:]
        for (name, value) in object {
            guard let name = read(name) else { throw bad(key, "has a key that it cannot have") }
            guard let bytes = value.string.flatMap(Base64.decode), bytes.count <= BridgeLimits.valueBytes else {
                throw bad(key, "holds what is no base64 of at most \(BridgeLimits.valueBytes) bytes")
            }
            result[name] = bytes
        }
        return result
    }

    func serviceData() throws(BridgeMessageError) -> [BluetoothUUID: [UInt8]] {
        try data("serviceData") { BluetoothUUID($0) }
    }

    func manufacturerData() throws(BridgeMessageError) -> [UInt16: [UInt8]] {
        try data("manufacturerData") { $0.utf8.count == 4 && !$0.hasPrefix("+") ? UInt16($0, radix: 16) : nil }
    }

    /// The protocol's words, or the extension's bits, which know more.
    func properties() throws(BridgeMessageError) -> CharacteristicProperties {
        if let raw = try optionalInteger("rawProperties", 0...0xFFFF) {
            return CharacteristicProperties(rawValue: UInt16(raw))
        }
        return PropertyNames.properties(try texts("properties"))
    }

    /// Milliseconds.
    func duration(_ key: String, _ limit: Duration) throws(BridgeMessageError) -> Duration? {
        try optionalInteger(key, 0...Int(limit / .milliseconds(1))).map { .milliseconds($0) }
    }
}

extension JSONObject {
    mutating func put(_ key: String, _ text: String?) {
        if let text { self[key] = .string(text) }
    }

    mutating func put(_ key: String, _ number: Int?) {
        if let number { self[key] = .int(number) }
    }

    mutating func put(_ key: String, _ uuids: some Sequence<BluetoothUUID>) {
        self[key] = .array(uuids.map { .string($0.description) })
    }

    mutating func put(_ key: String, _ texts: [String]) {
        self[key] = .array(texts.map { .string($0) })
    }

    mutating func put(_ key: String, bytes: [UInt8]) {
        self[key] = .string(Base64.encode(bytes))
    }

    mutating func put(_ key: String, _ data: [BluetoothUUID: [UInt8]]) {
        let pairs = data.sorted { $0.key < $1.key }
        self[key] = .object(JSONObject(pairs.map { ($0.key.description, .string(Base64.encode($0.value))) }))
    }

    mutating func put(manufacturerData data: [UInt16: [UInt8]]) {
        guard !data.isEmpty else { return }
        let pairs = data.sorted { $0.key < $1.key }.map { key, value in
            let digits = String(key, radix: 16, uppercase: true)
            let name = String(repeating: "0", count: 4 - digits.utf8.count) + digits
            return (name, JSONValue.string(Base64.encode(value)))
        }
        self["manufacturerData"] = .object(JSONObject(pairs))
    }
}
