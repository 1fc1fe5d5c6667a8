// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit

/// Reads a bridge's token from an option, a file or the environment. Errors name the source, never the token.
enum TokenArguments {
    /// Read where neither option is given.
    static let variable = "NEARBY_BRIDGE_TOKEN"

    static func token(_ values: OptionValues) throws(Failure) -> String? {
        try values.refuse("token", with: "token-file")
        if let text = values.texts("token").first { return try checked(text, from: "--token") }
        if let path = values.texts("token-file").first {
            return try checked(try firstLine(of: path), from: "the file of --token-file")
        }
        guard let text = getenv(variable).map({ String(cString: $0) }) else { return nil }
        return try checked(text, from: variable)
    }

    private static func checked(_ text: String, from source: String) throws(Failure) -> String {
        guard Limits.tokenBytes.contains(text.utf8.count), PlainText.isPlain(text) else {
            throw .usage("the token from \(source) has to be 1 to \(Limits.tokenBytes.upperBound) printable bytes")
        }
        return text
    }

    private static func firstLine(of path: String) throws(Failure) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path, errno) }
        defer { close(descriptor) }
        switch HiddenLine.read(descriptor, limit: Limits.tokenBytes.upperBound) {
        case .success(let line): return line
        case .failure(let error): throw unreadable(path, error.number)
        }
    }

    private static func unreadable(_ path: String, _ error: Int32) -> Failure {
        Failure(
            .unreadableFile, code: "unreadableFile",
            "--token-file: cannot read \(PlainText.quoted(path)): \(systemMessage(error))")
    }
}

extension OptionSpec {
    static let token = value("token", nil, "TOKEN", "the bridge's token, 1 to 256 bytes (better: --token-file)")
    static let tokenFile = value("token-file", nil, "FILE", "read the bridge's token from the first line of FILE")
}
