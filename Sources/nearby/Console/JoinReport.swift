// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// What `nearby join` tells on its way.
final class JoinReport: Sendable {
    private struct State {
        /// By their numbers at the prompt. A host keeps its number, so that a late newcomer never takes over the one
        /// that somebody is about to type.
        var listed: [PeerIdentifier] = []
        var names: [PeerIdentifier: String] = [:]
        var isChosen = false
        var ofOtherApps: Set<PeerIdentifier> = []
    }

    private let configuration: NearbyClient.Configuration
    private let console: Console
    private let transfer = TransferBar()
    private let state = Guarded(State())

    init(_ configuration: NearbyClient.Configuration, _ console: Console) {
        self.configuration = configuration
        self.console = console
    }

    func show(_ event: ClientEvent) {
        if console.options.json, console.options.verbose, let object = Self.json(event) {
            console.result(JSONLine.text(object))
        }
        switch event {
        case .scanning:
            step("Looking for \(PlainText.printable(configuration.appId))…")
        case .unavailable(let error):
            // A join that does not wait ends with the same in a moment.
            console.waiting(for: error, isWorthKnowing: configuration.whenUnavailable == .wait)
            console.status("Waiting for Bluetooth…")
        case .candidates(let candidates):
            show(candidates)
        case .connecting(let peer):
            step("Connecting to \(name(peer))…")
        case .connected(let peer):
            step("Connected to \(name(peer))")
        case .requesting(let peer):
            transfer.begin()
            step("Asking \(name(peer)) to join…")
        case .progress(_, let bytes):
            if let text = transfer.advance(bytes, of: nil) { console.status("Receiving  \(text)") }
        case .passedOver(let peer, let reason):
            console.detail("passed over \(name(peer)): \(PlainText.printable(reason))")
            let others = state.withLock { state in
                state.isChosen = false
                if reason == ExchangeFailure.otherApp.sentence, state.ofOtherApps.count < Limits.devices {
                    state.ofOtherApps.insert(peer)
                }
                return state.ofOtherApps.count
            }
            console.status(Self.lookingOn(others))
        case .received:
            break
        }
    }

    /// The result, on standard output.
    ///
    /// - Parameter file: where the attachment went.
    func finish(_ handoff: Handoff, savedAs file: String? = nil) {
        console.clearStatus()
        if console.options.json {
            console.result(JSONLine.text(Self.json(handoff, savedAs: file)))
        } else {
            console.results(Self.lines(handoff.payload))
            if let file { console.note("Saved \(PlainText.printable(file, limit: Limits.printedMessage))") }
            let session = handoff.message.sessionId.map { ", session \(PlainText.printable($0))" } ?? ""
            let time = TimeText.print(handoff.timing.answered)
            console.note("Received from \(name(handoff.peer)) in \(time)\(session), \(handoff.security.words)")
        }
        console.status("Disconnecting…")
    }

    private func step(_ text: String) {
        console.detail(text)
        console.status(text)
    }

    private func name(_ peer: PeerIdentifier) -> String {
        state.withLock { $0.names[peer] } ?? PeerNames.text(peer)
    }

    private func show(_ candidates: [NearbyCandidate]) {
        let isManual = configuration.selection == .manual
        let (news, isChosen) = state.withLock { state in
            var news: [(Int, NearbyCandidate)] = []
            for candidate in candidates {
                state.names[candidate.peer] = PeerNames.text(candidate)
                guard isManual, candidate.isNear, !state.listed.contains(candidate.peer),
                    state.listed.count < Limits.devices
                else { continue }
                state.listed.append(candidate.peer)
                news.append((state.listed.count, candidate))
            }
            return (news, state.isChosen)
        }
        guard isManual else {
            guard let best = candidates.first else { return }
            let count = candidates.count == 1 ? "One host" : "\(candidates.count) hosts"
            return console.status("\(count) in reach, the strongest at \(PeerNames.rssi(best.rssi))")
        }
        guard !news.isEmpty, !isChosen else { return }
        console.prompt("\r\u{1B}[K")
        for (number, candidate) in news {
            console.error("\(number))  \(PeerNames.text(candidate))  \(PeerNames.rssi(candidate.rssi))")
        }
        console.prompt("Join which? ")
    }

    /// The host that a line typed at the prompt means.
    func chosen(_ line: String) -> PeerIdentifier? {
        let text = line.filter { !$0.isWhitespace }
        let (peer, count) = state.withLock { state -> (PeerIdentifier?, Int) in
            guard text.utf8.count <= 4, let number = Int(text), state.listed.indices.contains(number - 1) else {
                return (nil, state.listed.count)
            }
            state.isChosen = true
            return (state.listed[number - 1], state.listed.count)
        }
        if peer == nil {
            console.prompt(count == 0 ? "None is in reach yet.\n" : "Type a number from 1 to \(count): ")
        }
        return peer
    }

    // MARK: Texts

    /// - Parameter others: hosts of other apps that were met.
    static func lookingOn(_ others: Int) -> String {
        switch others {
        case 0: "Looking on…"
        case 1: "Looking on… (one host nearby serves another app)"
        default: "Looking on… (\(others) hosts nearby serve other apps)"
        }
    }

    /// One line for each key, values aligned. Values that are not strings are printed as JSON.
    static func lines(_ payload: NearbyPayload) -> [String] {
        TextTable.lines(
            payload.object.map { key, value in
                // Nobody reads base64.
                if key == Attachment.dataKey, let data = value.string {
                    return [key, "(\(data.utf8.count) characters of base64; --output DIR saves the file)"]
                }
                let text = value.string ?? String(decoding: value.encoded(), as: UTF8.self)
                return [PlainText.printable(key), PlainText.printable(text, limit: Limits.printedPayload)]
            }
        )
    }

    static func json(_ handoff: Handoff, savedAs file: String? = nil) -> JSONObject {
        let timing = handoff.timing
        return .compact([
            "event": "handoff",
            "appId": .string(handoff.message.appId),
            "sessionId": handoff.message.sessionId.map(JSONValue.string),
            "payload": .object(handoff.payload.object),
            "host": .string(handoff.peer),
            "security": .string(handoff.security.name),
            "file": file.map(JSONValue.string),
            "timing": [
                "seen": .milliseconds(timing.seen),
                "connected": .milliseconds(timing.connected),
                "resolved": .milliseconds(timing.resolved),
                "subscribed": .milliseconds(timing.subscribed),
                "written": .milliseconds(timing.written),
                "answered": .milliseconds(timing.answered),
            ],
        ])
    }

    static func json(_ event: ClientEvent) -> JSONObject? {
        switch event {
        case .scanning: ["event": "scanning"]
        case .unavailable(let error):
            ["event": "unavailable", "code": .string("\(error.code)"), "message": .string(error.description)]
        case .candidates(let candidates):
            ["event": "candidates", "hosts": .array(candidates.map { .object(json($0)) })]
        case .connecting(let peer): ["event": "connecting", "host": .string(peer)]
        case .connected(let peer): ["event": "connected", "host": .string(peer)]
        case .requesting(let peer): ["event": "requesting", "host": .string(peer)]
        case .passedOver(let peer, let reason):
            ["event": "passedOver", "host": .string(peer), "reason": .string(reason)]
        case .progress(let peer, let bytes):
            ["event": "progress", "host": .string(peer), "bytes": .int(bytes)]
        case .received: nil
        }
    }

    private static func json(_ candidate: NearbyCandidate) -> JSONObject {
        .compact([
            "host": .string(candidate.peer),
            "address": candidate.address.map { .string($0.description) },
            "name": candidate.name.map(JSONValue.string),
            "rssi": candidate.rssi.map(JSONValue.int),
            "near": .bool(candidate.isNear),
        ])
    }
}
