// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// How far a large payload has come, once that takes long enough to be worth a look.
final class TransferBar: Sendable {
    private struct State {
        var began: Duration?
        var shown: Duration?
    }

    private static let width = 20

    private let state = Guarded(State())
    private let now: @Sendable () -> Duration

    init(now: @escaping @Sendable () -> Duration = { Monitor.now }) {
        self.now = now
    }

    /// Another transfer begins.
    func begin() { state.withLock { $0 = State() } }

    /// - Parameter total: nil where it is not known.
    /// - Returns: what to show; nil in the first second, and where the last one is younger than a tenth.
    func advance(_ bytes: Int, of total: Int?) -> String? {
        let now = now()
        let isDue = state.withLock { state in
            let began = state.began ?? now
            state.began = began
            guard now - began >= .seconds(1) else { return false }
            if let shown = state.shown, now - shown < .milliseconds(100), bytes != total { return false }
            state.shown = now
            return true
        }
        return isDue ? Self.text(bytes, of: total) : nil
    }

    static func text(_ bytes: Int, of total: Int?) -> String {
        guard let total, total > 0 else { return kibibytes(bytes) }
        let filled = min(width, bytes * width / total)
        let bar = String(repeating: "#", count: filled) + String(repeating: "·", count: width - filled)
        return "[\(bar)] \(kibibytes(bytes)) of \(kibibytes(total))"
    }

    private static func kibibytes(_ bytes: Int) -> String {
        let tenths = bytes * 10 / 1_024
        return "\(tenths / 10).\(tenths % 10) KiB"
    }
}

extension MessageSecurity {
    /// For `--json`.
    var name: String {
        switch self {
        case .plaintext: "plaintext"
        case .sealed: "sealed"
        case .authenticated: "authenticated"
        }
    }

    /// For people.
    var words: String {
        switch self {
        case .plaintext: "in plain text"
        case .sealed: "sealed, unauthenticated"
        case .authenticated: "sealed and authenticated"
        }
    }
}
