// SPDX-License-Identifier: MIT

public import NearbyProtocol

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a host hands over: a JSON object. The framework carries it and has no idea what it means.
///
/// ```swift
/// let payload: NearbyPayload = ["roomCode": "SWIFT42"]
/// payload["roomCode"]                       // "SWIFT42"
/// let room = try payload.decode(Room.self)  // any Decodable
/// ```
///
/// The order of the keys is kept. Today's iOS and Android peers read values that are strings, and no others: see
/// `nonStringKeys`.
public struct NearbyPayload: Sendable, Hashable {
    /// The object itself, with values of every JSON type.
    public var object: JSONObject

    public init(_ object: JSONObject = JSONObject()) { self.object = object }

    /// The value of a key if it is a string; `nil` if there is none or it is of another type.
    ///
    /// Setting `nil` removes the key.
    public subscript(key: String) -> String? {
        get { object[key]?.string }
        set { object[key] = newValue.map(JSONValue.string) }
    }

    /// Encodes a value that is an object in JSON, such as a struct or a dictionary.
    ///
    /// - Throws: `NearbyError` of code `invalidConfiguration` if it cannot be encoded or is not an object.
    public init(encoding value: some Encodable) throws(NearbyError) {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            guard case .object(let object) = try JSONValue(parsing: [UInt8](try encoder.encode(value))) else {
                throw NearbyError(.invalidConfiguration, "a payload is a JSON object, and this value is none")
            }
            self.object = object
        } catch let error as NearbyError {
            throw error
        } catch {
            throw NearbyError(.invalidConfiguration, "the payload cannot be written as JSON", detail: "\(error)")
        }
    }

    /// Reads the payload into a type of the app's.
    ///
    /// - Throws: `DecodingError`, as `JSONDecoder` does.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(object.encoded()))
    }

    /// The keys whose values are not strings, which today's mobile peers do not read.
    public var nonStringKeys: [String] {
        object.compactMap { $0.value.string == nil ? $0.key : nil }
    }
}

extension NearbyPayload: ExpressibleByDictionaryLiteral {
    /// The first of two equal keys wins, as everywhere in the protocol.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        var object = JSONObject()
        for (key, value) in elements where object[key] == nil { object[key] = value }
        self.init(object)
    }
}
