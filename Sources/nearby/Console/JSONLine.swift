// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// One JSON object on one line.
enum JSONLine {
    /// Everything that is not plain text is escaped, so that the line is harmless on a terminal, too.
    static func text(_ object: JSONObject) -> String {
        let encoded = object.encoded()
        // Nearly every line is ASCII, and needs no look at its scalars.
        if encoded.allSatisfy({ 0x20...0x7e ~= $0 }) { return String(decoding: encoded, as: UTF8.self) }
        var result = ""
        for (scalar, isPlain) in PlainText.scalars(String(decoding: encoded, as: UTF8.self)) {
            if isPlain {
                result.unicodeScalars.append(scalar)
            } else {
                // Outside strings JSON has plain ASCII only, so this one stands in a string, where \u may stand.
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            }
        }
        return result
    }
}

extension JSONObject {
    /// The pairs that have a value.
    static func compact(_ pairs: KeyValuePairs<String, JSONValue?>) -> JSONObject {
        var object = JSONObject()
        for case (let key, let value?) in pairs { object[key] = value }
        return object
    }
}

extension JSONValue {
    static func string(_ peer: PeerIdentifier) -> JSONValue { .string(peer.rawValue) }

    /// Milliseconds, to a tenth.
    static func milliseconds(_ duration: Duration) -> JSONValue {
        .double(((duration / .milliseconds(1)) * 10).rounded() / 10)
    }
}
