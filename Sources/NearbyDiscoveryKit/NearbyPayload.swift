// SPDX-License-Identifier: MIT

public import NearbyProtocol

/// What a host hands over: a JSON object. The framework carries it and has no idea what it means.
///
/// ```swift
/// let payload: NearbyPayload = ["roomCode": "SWIFT42"]
/// let another: NearbyPayload = ["roomCode": .string(code), "seats": .int(seats)]  // variables are wrapped
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
