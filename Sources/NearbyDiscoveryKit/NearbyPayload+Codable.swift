// SPDX-License-Identifier: MIT

public import NearbyProtocol

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// Emitted into the app that calls them and nowhere else, so that a static binary that does not, such as `nearby`, is
// not linked with Foundation's coders: they are 5 of its 17 MB.
extension NearbyPayload {
    /// Encodes a value that is an object in JSON, such as a struct or a dictionary.
    ///
    /// - Throws: `NearbyError` of code `invalidConfiguration` if it cannot be encoded or is not an object.
    @_alwaysEmitIntoClient
    public init(encoding value: some Encodable) throws(NearbyError) {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            guard case .object(let object) = try JSONValue(parsing: [UInt8](try encoder.encode(value))) else {
                throw NearbyError(.invalidConfiguration, "a payload is a JSON object, and this value is none")
            }
            self.init(object)
        } catch let error as NearbyError {
            throw error
        } catch {
            throw NearbyError(.invalidConfiguration, "the payload cannot be written as JSON", detail: "\(error)")
        }
    }

    /// Reads the payload into a type of the app's.
    ///
    /// - Throws: `DecodingError`, as `JSONDecoder` does.
    @_alwaysEmitIntoClient
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(object.encoded()))
    }
}
