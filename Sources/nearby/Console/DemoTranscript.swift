// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// What the two processes of `nearby demo` print, labelled.
final class DemoTranscript: Sendable {
    enum Role: String, Sendable {
        case host, client = "join"
    }

    private struct State {
        var clientOutput: [String] = []
        var keptBytes = 0
    }

    private let console: Console
    private let state = Guarded(State())

    init(_ console: Console) { self.console = console }

    /// What the client has printed on its standard output.
    var clientOutput: [String] { state.withLock { $0.clientOutput } }

    func take(_ line: String, from role: Role, isError: Bool) {
        if role == .client, !isError {
            state.withLock { state in
                state.keptBytes += line.utf8.count
                if state.keptBytes <= Limits.keptOutputBytes { state.clientOutput.append(line) }
            }
        }
        if console.options.json {
            console.result(
                JSONLine.text([
                    "event": "output", "process": .string(role.rawValue),
                    "stream": isError ? "stderr" : "stdout", "line": .string(line),
                ])
            )
        } else if isError {
            console.note("\(Self.label(role)) \u{250A} \(PlainText.printable(line, limit: Limits.printedMessage))")
        } else {
            console.result("\(Self.label(role)) \u{2502} \(PlainText.printable(line, limit: Limits.printedPayload))")
        }
    }

    private static func label(_ role: Role) -> String {
        role.rawValue + String(repeating: " ", count: 4 - role.rawValue.count)
    }
}
