// SPDX-License-Identifier: MIT

import BridgeRadio
import EmulatorBridge
import NearbyDiscoveryKit

/// What `nearby bridge` tells while it runs.
final class BridgeReport: Sendable {
    private let console: Console
    private let endpoint: BridgeEndpoint
    private let isSimulated: Bool
    private let clients = Guarded(0)

    init(_ console: Console, endpoint: BridgeEndpoint, isSimulated: Bool) {
        self.console = console
        self.endpoint = endpoint
        self.isSimulated = isSimulated
    }

    func begin(hasToken: Bool) {
        let radio = isSimulated ? "simulated" : "bluez"
        if console.options.json {
            console.result(
                JSONLine.text(
                    ["event": "bridging", "listen": .string(endpoint.description), "radio": .string(radio)]))
        } else {
            console.result(TextTable.line("listening", "\(endpoint)  (\(radio))"))
        }
        if hasToken {
            console.error(
                "warning: the token, and all that clients send, travels in the clear; anybody on its way can read it")
        }
        if endpoint.port == BridgeEndpoint.defaultPort {
            console.note("An Android emulator on this machine finds the bridge at 10.0.2.2:\(endpoint.port).")
        }
        console.note("From elsewhere: nearby join --app-id ID --radio bridge:\(endpoint)")
        showStatus()
    }

    func show(_ event: BridgeNotice) {
        switch event {
        case .clientConnected(let number):
            clients.withLock { $0 += 1 }
            tell("client", "\(number) connected", ["event": "clientConnected", "client": .int(number)])
        case .clientLeft(let number, let error):
            clients.withLock { $0 -= 1 }
            var object: JSONObject = ["event": "clientLeft", "client": .int(number)]
            object["code"] = error.map { .string($0.code.description) }
            object["message"] = error.map { .string($0.message) }
            let reason = error.map { ": " + PlainText.printable($0.message, limit: Limits.printedMessage) } ?? ""
            tell("client", "\(number) left\(reason)", object)
        case .clientRefused:
            tell("client", "refused: there are enough", ["event": "clientRefused"])
        }
        showStatus()
    }

    private func tell(_ label: String, _ text: String, _ object: JSONObject) {
        console.result(console.options.json ? JSONLine.text(object) : TextTable.line(label, text))
    }

    private func showStatus() {
        let count = clients.withLock { $0 }
        console.status("Bridging for \(count == 1 ? "one client" : "\(count) clients") (Ctrl-C ends)")
    }
}
