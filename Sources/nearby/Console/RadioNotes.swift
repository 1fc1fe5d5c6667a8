// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

extension Console {
    /// Tells why Bluetooth is away: what and what to do, and the system's own words with `--verbose` only.
    func waiting(for error: BluetoothError, isWorthKnowing: Bool = true) {
        let text = Self.waiting(for: error)
        if isWorthKnowing { note(text) } else { detail(text) }
        tellCause(of: error)
    }

    static func waiting(for error: BluetoothError) -> String { "waiting for Bluetooth: \(words(error))" }

    /// Tells what the system has refused, and the host does without.
    func degraded(by error: BluetoothError) {
        note("note: \(Self.words(error))")
        tellCause(of: error)
    }

    private func tellCause(of error: BluetoothError) {
        if let cause = error.cause { detail("detail: " + PlainText.printable(cause, limit: Limits.printedMessage)) }
    }

    private static func words(_ error: BluetoothError) -> String {
        let failure = Failure(error)
        let advice = failure.advice.map { ". \($0)" } ?? ""
        return PlainText.printable(failure.message + advice, limit: Limits.printedMessage)
    }
}
