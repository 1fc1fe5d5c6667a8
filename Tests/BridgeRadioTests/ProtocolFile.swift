// SPDX-License-Identifier: MIT

import Foundation
import JSON
import Testing

/// The project's copy of the bridge protocol.
enum ProtocolFile {
    static func read(from file: String = #filePath) throws -> JSONObject {
        let root = URL(fileURLWithPath: file)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let data = try Data(contentsOf: root.appendingPathComponent("shared/bridge-protocol.json"))
        return try JSONObject(parsing: Array(data))
    }

    /// The examples of `commands` or `events`.
    static func examples(_ kind: String) throws -> [JSONObject] {
        try #require(try read().object(kind)).map { name, description in
            try #require(description.object?.object("example"), "\(name) has no example")
        }
    }
}

extension JSONObject {
    /// The same whatever the order of the keys.
    var sorted: JSONObject {
        JSONObject(map { ($0.key, $0.value.sorted) }.sorted { $0.0 < $1.0 })
    }
}

extension JSONValue {
    var sorted: JSONValue {
        switch self {
        case .object(let object): .object(object.sorted)
        case .array(let values): .array(values.map(\.sorted))
        default: self
        }
    }
}
