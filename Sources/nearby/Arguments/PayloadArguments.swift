// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit

/// Reads payloads: `KEY=VALUE` and `KEY:=JSON` from the command line, a JSON object from a file.
enum PayloadArguments {
    /// The payload that `--payload` and `--payload-file` give together; `nil` if neither is there.
    static func payload(_ values: OptionValues) throws(Failure) -> NearbyPayload? {
        try values.refuse("payload", with: "payload-file")
        if let path = values.texts("payload-file").first {
            return try parse(file: try read(path), named: path)
        }
        let pairs = values.texts("payload")
        return pairs.isEmpty ? nil : try parse(pairs: pairs)
    }

    static func parse(pairs: [String]) throws(Failure) -> NearbyPayload {
        guard pairs.count <= Limits.payloadPairs else {
            throw .usage(option: "payload", "given \(pairs.count) times; at most \(Limits.payloadPairs) pairs")
        }
        var object = JSONObject()
        for pair in pairs {
            let (key, value) = try parse(pair: pair)
            guard object.insertIfAbsent(key, value) else {
                throw .usage(option: "payload", "the key \(PlainText.quoted(key)) is given twice")
            }
        }
        return NearbyPayload(object)
    }

    /// The first `=` ends the key; a colon right before it makes the value JSON.
    private static func parse(pair: String) throws(Failure) -> (String, JSONValue) {
        let expected = "expected KEY=VALUE, or KEY:=JSON for a number, true, false, null, a list or an object"
        guard let equals = pair.firstIndex(of: "=") else {
            throw .usage(option: "payload", "\(PlainText.quoted(pair)) has no =; \(expected)")
        }
        let text = String(pair[pair.index(after: equals)...])
        var key = pair[..<equals]
        let isJSON = key.last == ":"
        if isJSON { key = key.dropLast() }
        guard !key.isEmpty else {
            throw .usage(option: "payload", "\(PlainText.quoted(pair)) has no key; \(expected)")
        }
        guard isJSON else { return (String(key), .string(text)) }
        do {
            return (String(key), try JSONValue(parsing: [UInt8](text.utf8)))
        } catch {
            throw .usage(
                option: "payload",
                "\(PlainText.quoted(text)) behind \(PlainText.printable(String(key))):= is not JSON; "
                    + "expected a number, true, false, null, a \"string\", a list or an object"
            )
        }
    }

    static func parse(file bytes: [UInt8], named path: String) throws(Failure) -> NearbyPayload {
        let file = path == "-" ? "standard input" : PlainText.quoted(path)
        guard bytes.count <= Limits.payloadFileBytes else {
            throw unfit("\(file) is larger than \(Limits.payloadFileBytes) bytes")
        }
        do {
            guard case .object(let object) = try JSONValue(parsing: bytes) else {
                throw unfit("\(file) is JSON, but not an object; expected {\"key\": \"value\", …}")
            }
            return NearbyPayload(object)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw unfit("\(file) is not JSON; expected an object, {\"key\": \"value\", …}", detail: "\(error)")
        }
    }

    private static func unfit(_ message: String, detail: String? = nil) -> Failure {
        Failure(.unfitPayload, code: "unfitPayload", "--payload-file: \(message)", detail: detail)
    }

    /// At most one byte more than the limit, so that the caller can tell.
    private static func read(_ path: String) throws(Failure) -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path, errno) }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while bytes.count <= Limits.payloadFileBytes {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw unreadable(path, errno) }
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return bytes
    }

    private static func unreadable(_ path: String, _ error: Int32) -> Failure {
        Failure(
            .unreadableFile,
            code: "unreadableFile",
            "--payload-file: cannot read \(PlainText.quoted(path)): \(systemMessage(error))"
        )
    }
}
