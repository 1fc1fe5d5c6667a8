// SPDX-License-Identifier: MIT

import Foundation

@testable import NearbyProtocol

/// Files under `shared/`, read with Foundation's decoder: our own reader is what they test.
enum SharedFiles {
    static func decode<T: Decodable>(_ type: T.Type, _ path: String, from file: String = #filePath) throws -> T {
        let root = URL(fileURLWithPath: file)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try JSONDecoder().decode(type, from: Data(contentsOf: root.appendingPathComponent("shared/" + path)))
    }

    static func text(_ path: String, from file: String = #filePath) throws -> String {
        let root = URL(fileURLWithPath: file)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
}

struct VectorFile<Case: Decodable & Sendable>: Decodable, Sendable {
    var format: Int
    var cases: [Case]
}

/// A message as shared/vectors/README.md wraps it.
struct VectorMessage: Decodable, Sendable {
    var text: String?
    var hex: String?
    var parts: [Part]?

    enum Part: Decodable, Sendable {
        case text(String)
        case repeated(String, Int)

        private enum Keys: String, CodingKey {
            case `repeat`
            case times
        }

        init(from decoder: any Decoder) throws {
            if let text = try? decoder.singleValueContainer().decode(String.self) {
                self = .text(text)
            } else {
                let container = try decoder.container(keyedBy: Keys.self)
                self = .repeated(
                    try container.decode(String.self, forKey: .repeat), try container.decode(Int.self, forKey: .times))
            }
        }
    }

    var bytes: [UInt8] {
        if let text { return Array(text.utf8) }
        if let hex {
            let digits = Array(hex.utf8)
            return stride(from: 0, to: digits.count, by: 2).compactMap {
                UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
            }
        }
        return (parts ?? []).flatMap { part -> [UInt8] in
            switch part {
            case .text(let text): Array(text.utf8)
            case .repeated(let unit, let times): Array(repeatElement(Array(unit.utf8), count: times).joined())
            }
        }
    }
}
