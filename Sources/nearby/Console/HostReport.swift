// SPDX-License-Identifier: MIT

import Glibc
import NearbyDiscoveryKit
import NearbyProtocol

/// What `nearby host` tells while it serves.
final class HostReport: Sendable {
    private let configuration: NearbyHost.Configuration
    private let radio: RadioOptions
    private let console: Console
    private let transfer = TransferBar()
    private struct State {
        var deliveries = 0
        var hasServed = false
        /// Why not, as long as it has not.
        var reason: BluetoothError?
    }

    private let state = Guarded(State())

    init(_ configuration: NearbyHost.Configuration, on radio: RadioOptions = RadioOptions(), _ console: Console) {
        self.configuration = configuration
        self.radio = radio
        self.console = console
    }

    /// Clients that have taken the payload.
    var deliveries: Int { state.withLock { $0.deliveries } }

    /// Why nobody can have found the host; `nil` once it has served.
    var failureToServe: BluetoothError? { state.withLock { $0.hasServed ? nil : $0.reason ?? .noAnswer } }

    func begin(notices: [String]) {
        for notice in notices { console.note("note: " + PlainText.printable(notice, limit: Limits.printedMessage)) }
        for line in Self.budget(configuration) { console.note(line) }
        console.status("Starting…")
    }

    func end() { console.clearStatus() }

    /// A QR code of what another device needs to join.
    func picture(_ passcode: Passcode) {
        guard let code = QRCode(JoinLink.text(appId: configuration.appId, passcode: passcode)) else {
            return console.error("The QR code cannot be made: app id and passcode are too long.")
        }
        guard code.columns <= console.terminalSize.columns else {
            return console.error("The QR code needs \(code.columns) columns; this terminal is narrower.")
        }
        console.error(code.lines.joined(separator: "\n"))
    }

    func show(_ event: NearbyDiscoveryKit.HostEvent) {
        if case .delivered = event { state.withLock { $0.deliveries += 1 } }
        if console.options.json {
            if case .progress = event, !console.options.verbose {
                // One for every frame: only where they are wanted.
            } else {
                console.result(JSONLine.text(Self.json(event, configuration)))
            }
        } else if let (label, text) = Self.result(event, configuration) {
            console.result(TextTable.line(label, text))
        }
        progress(event)
    }

    private func progress(_ event: NearbyDiscoveryKit.HostEvent) {
        switch event {
        case .serving(_, let degraded):
            if let degraded { console.degraded(by: degraded) }
            let isFirst = state.withLock { state in
                defer { state.hasServed = true }
                return !state.hasServed
            }
            if console.isInteractive, isFirst, !console.options.json {
                if let hint = Self.hint(configuration, on: radio) { console.note(hint) }
                if configuration.security.hasPasscode { console.note("It will ask for the passcode.") }
            }
            waiting()
        case .unavailable(let error):
            state.withLock { $0.reason = error }
            // At a start that does not wait the same becomes the error in a moment.
            let isWorthKnowing = configuration.whenUnavailable == .wait || state.withLock { $0.hasServed }
            console.waiting(for: error, isWorthKnowing: isWorthKnowing)
            console.status("Waiting for Bluetooth…")
        case .joinRequested(let request):
            transfer.begin()
            console.status("\(PeerNames.text(request.client)) asks…")
        case .handedOff(let client):
            console.detail("handed over to \(PeerNames.text(client)); waiting until it has left")
            console.status("\(PeerNames.text(client)) has the payload…")
        case .progress(let client, let bytes, let total):
            if let bar = transfer.advance(bytes, of: total) {
                console.status("\(PeerNames.text(client)) gets the payload  \(bar)")
            }
        case .underAttack(let time):
            console.note(
                "Too many wrong passcodes: every attempt is refused for \(time.components.seconds) s. "
                    + "Somebody may be guessing; a new passcode keeps them from what they know."
            )
        case .delivered, .rejected, .failed:
            waiting()
        }
    }

    private func waiting() {
        let joined = deliveries
        let count = joined == 0 ? "" : joined == 1 ? "one has joined, " : "\(joined) have joined, "
        console.status("Waiting for devices (\(count)Ctrl-C ends)")
    }

    // MARK: Texts

    /// What to type on the other side; on a bus that is not the system's, with that bus and an adapter of its own.
    ///
    /// - Parameter systemBus: what `DBUS_SYSTEM_BUS_ADDRESS` says. A bus of its own may be a container's way to the
    ///   system's or a simulation: nothing is said then.
    static func hint(
        _ configuration: NearbyHost.Configuration,
        on radio: RadioOptions,
        systemBus: String? = getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) }
    ) -> String? {
        let app = PlainText.printable(configuration.appId)
        guard let bus = radio.bus, bus != "system" else {
            return systemBus == nil ? "On the other device:  nearby join --app-id \(app)" : nil
        }
        let adapter = radio.adapter == "hci1" ? "hci0" : "hci1"
        let address = PlainText.printable(bus, limit: Limits.busAddressBytes)
        return "In another terminal:  nearby join --app-id \(app) --bus '\(address)' --adapter \(adapter)"
    }

    static func result(
        _ event: NearbyDiscoveryKit.HostEvent,
        _ configuration: NearbyHost.Configuration
    ) -> (label: String, text: String)? {
        switch event {
        case .serving(let session, _):
            ("serving", "\(PlainText.printable(configuration.appId))  session \(PlainText.printable(session))")
        case .unavailable, .handedOff, .progress:
            nil
        case .underAttack(let time):
            ("attacked", "too many wrong passcodes; all are refused for \(time.components.seconds) s")
        case .joinRequested(let request):
            ("request", PeerNames.text(request.client))
        case .delivered(let client):
            ("delivered", PeerNames.text(client))
        case .rejected(let client, let reason, let message):
            ("rejected", "\(PeerNames.text(client))  \(PlainText.printable("\(reason): \(message)"))")
        case .failed(let client, let error):
            ("failed", "\(PeerNames.text(client))  \(PlainText.printable(error.message))")
        }
    }

    static func json(
        _ event: NearbyDiscoveryKit.HostEvent,
        _ configuration: NearbyHost.Configuration
    ) -> JSONObject {
        switch event {
        case .serving(let session, let degraded):
            .compact([
                "event": "serving",
                "appId": .string(configuration.appId),
                "sessionId": .string(session),
                "degraded": degraded.map { .string($0.description) },
                "security": .string(configuration.security.hasPasscode ? "passcode" : "open"),
            ])
        case .unavailable(let error):
            ["event": "unavailable", "code": .string("\(error.code)"), "message": .string(error.description)]
        case .joinRequested(let request):
            .compact([
                "event": "joinRequested",
                "client": .string(request.client),
                "sessionId": request.sessionId.map(JSONValue.string),
                "payload": request.payload.map { .object($0.object) },
                "security": .string(request.security.name),
            ])
        case .handedOff(let client):
            ["event": "handedOff", "client": .string(client)]
        case .progress(let client, let bytes, let total):
            ["event": "progress", "client": .string(client), "bytes": .int(bytes), "of": .int(total)]
        case .underAttack(let time):
            ["event": "underAttack", "retryAfter": .int(Int(time.components.seconds))]
        case .delivered(let client):
            ["event": "delivered", "client": .string(client)]
        case .rejected(let client, let reason, let message):
            [
                "event": "rejected", "client": .string(client), "reason": .string(reason.rawValue),
                "message": .string(message),
            ]
        case .failed(let client, let error):
            [
                "event": "failed", "client": .string(client), "code": .string(error.code.description),
                "message": .string(error.message),
            ]
        }
    }

    /// The table of what fits which ATT MTU, where the envelope is longer than every phone takes.
    static func budget(_ configuration: NearbyHost.Configuration) -> [String] {
        let envelope = Envelope.handoff(
            appId: configuration.appId,
            sessionId: configuration.sessionId,
            payload: configuration.payload.object
        ).encoded().count
        guard envelope > ProtocolLimits.comfortableEnvelopeBytes, configuration.servesBasic else { return [] }
        let payload = configuration.payload.object.encoded().count
        var rows = [["  ATT MTU", "payload bytes that fit", "yours (\(payload))"]]
        for mtu in [23, 185, 247, 517] {
            let room = NotificationBudget(mtu: mtu)
                .payloadBytes(appId: configuration.appId, sessionId: configuration.sessionId)
            rows.append(["  \(mtu)", room < 2 ? "none" : "\(room)", payload <= room ? "fits" : "does not fit"])
        }
        return TextTable.lines(rows)
    }
}

extension NearbyHost.Configuration {
    /// Whether clients of the basic profile get anything.
    var servesBasic: Bool { profile != .extended && basicProfile != .refused && !security.hasPasscode }
}
