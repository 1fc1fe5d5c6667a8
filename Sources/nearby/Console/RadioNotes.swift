// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

extension Console {
    /// Tells why Bluetooth is away: what and what to do, and the system's own words with `--verbose` only.
    func waiting(for error: BluetoothError, isWorthKnowing: Bool = true) {
        let subject = error.subject.map { " (\($0))" } ?? ""
        let advice = Failure(error).advice.map { ". \($0)" } ?? ""
        let words = PlainText.printable(error.message + subject + advice, limit: Limits.printedMessage)
        let text = "waiting for Bluetooth: \(words)"
        if isWorthKnowing { note(text) } else { detail(text) }
        if let cause = error.cause { detail("detail: " + PlainText.printable(cause, limit: Limits.printedMessage)) }
    }
}
