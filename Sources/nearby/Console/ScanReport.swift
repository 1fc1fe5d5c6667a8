// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// What `nearby scan` has heard: a list that is redrawn on a terminal, lines elsewhere.
final class ScanReport: Sendable {
    private struct Row {
        var discovery: Discovery
        /// What the last printed line said.
        var printed: Discovery?
        /// Counts what is heard: the lower, the longer ago.
        var heard: UInt64
    }

    private struct State {
        var rows: [PeerIdentifier: Row] = [:]
        var heard: Set<PeerIdentifier> = []
        /// Those that were never near enough.
        var far: Set<PeerIdentifier> = []
        var clock: UInt64 = 0
        var isRedrawDue = false

        /// At the cost of the device that has been silent longest: else whoever fills the list first hides the others.
        mutating func makeRoom() {
            guard rows.count >= Limits.devices, let oldest = rows.min(by: { $0.value.heard < $1.value.heard })?.key
            else { return }
            rows[oldest] = nil
        }
    }

    /// dB that a signal has to change by before a device is printed again.
    private static let noticeableChange = 10
    private static let redrawPause: Duration = .milliseconds(200)

    private let console: Console
    private let loop: CommandLoop
    private let state = Guarded(State())
    private let isLive: Bool
    private let minimumRSSI: Int?

    /// - Parameter minimumRSSI: dBm; weaker reports are counted and not shown.
    init(_ context: CommandContext, minimumRSSI: Int? = nil) {
        self.minimumRSSI = minimumRSSI
        console = context.console
        loop = context.loop
        isLive = context.console.outputIsTerminal && !context.console.options.json
    }

    /// Devices heard since the start.
    var count: Int { state.withLock { $0.heard.count } }

    /// Devices heard that were never near enough.
    var farCount: Int { state.withLock { $0.far.count } }

    func show(_ event: ScanEvent) {
        switch event {
        case .discovered(let discovery): discovered(discovery)
        case .gone(let peer):
            state.withLock { _ = $0.rows.removeValue(forKey: peer) }
            if console.options.json { console.result(JSONLine.text(["event": "gone", "device": .string(peer)])) }
            if isLive { redrawSoon() }
        case .paused(let error):
            if console.options.json {
                console.result(
                    JSONLine.text([
                        "event": "paused", "code": .string("\(error.code)"), "message": .string(error.description),
                    ])
                )
            }
            console.waiting(for: error)
        case .resumed:
            if console.options.json { console.result(JSONLine.text(["event": "resumed"])) }
            console.detail("the scan goes on")
        }
    }

    /// Draws what has come since the last redraw.
    func end() {
        if isLive { redraw() }
        console.clearStatus()
    }

    /// Also of a device that has no signal strength yet; what is known to be too weak is counted.
    private func isTooFar(_ discovery: Discovery) -> Bool {
        guard let minimumRSSI else { return false }
        return state.withLock { state in
            if let rssi = discovery.rssi, rssi >= minimumRSSI {
                state.far.remove(discovery.peer)
                return false
            }
            let isKnown = state.heard.contains(discovery.peer)
            guard discovery.rssi != nil else { return !isKnown }
            if !isKnown, state.far.count < Limits.devicesCounted { state.far.insert(discovery.peer) }
            return true
        }
    }

    private func discovered(_ heard: Discovery) {
        // 127 and positive values are no readings; they would head the list.
        let discovery = Self.withoutFalseReading(heard)
        if isTooFar(discovery) { return }
        let isNews = state.withLock { state in
            let before = state.rows[discovery.peer]
            if before == nil { state.makeRoom() }
            state.clock += 1
            if state.heard.count < Limits.devicesCounted { state.heard.insert(discovery.peer) }
            var row = Row(discovery: discovery, printed: before?.printed, heard: state.clock)
            if row.discovery.rssi == nil { row.discovery.rssi = before?.discovery.rssi }
            let isNews = row.printed.map { Self.differs(row.discovery, $0) } ?? true
            if isNews { row.printed = row.discovery }
            state.rows[discovery.peer] = row
            return isNews
        }
        if console.options.json {
            console.result(JSONLine.text(Self.json(heard)))
        } else if isLive {
            redrawSoon()
        } else if isNews {
            console.result(Self.line(discovery))
        }
    }

    private func redrawSoon() {
        let isDue = state.withLock { state in
            defer { state.isRedrawDue = true }
            return state.isRedrawDue
        }
        if !isDue { loop.schedule(after: Self.redrawPause) { [weak self] in self?.redraw() } }
    }

    private func redraw() {
        let discoveries = state.withLock { state in
            state.isRedrawDue = false
            return state.rows.values.map(\.discovery)
        }
        console.block(Self.table(discoveries))
    }

    // MARK: Texts

    private static func withoutFalseReading(_ discovery: Discovery) -> Discovery {
        guard let rssi = discovery.rssi, rssi > 0 else { return discovery }
        var discovery = discovery
        discovery.rssi = nil
        return discovery
    }

    private static func differs(_ left: Discovery, _ right: Discovery) -> Bool {
        left.advertisement.localName != right.advertisement.localName
            || left.advertisement.serviceUUIDs != right.advertisement.serviceUUIDs
            || abs((left.rssi ?? 0) - (right.rssi ?? 0)) >= noticeableChange
    }

    /// The strongest first.
    static func table(_ discoveries: [Discovery]) -> [String] {
        let sorted = discoveries.sorted { left, right in
            (left.rssi ?? -128, right.peer.rawValue) > (right.rssi ?? -128, left.peer.rawValue)
        }
        return TextTable.lines([["ADDRESS", "RSSI", "NAME", "SERVICES"]] + sorted.map(cells))
    }

    /// Columns of fixed widths, since the lines come one by one.
    static func line(_ discovery: Discovery) -> String {
        let cells = cells(discovery)
        var text = ""
        for (cell, width) in zip(cells, [17, 8, 29, 0]) {
            text += cell + String(repeating: " ", count: max(0, width - PlainText.width(cell)) + (width > 0 ? 2 : 0))
        }
        while text.last == " " { text.removeLast() }
        return text
    }

    private static func cells(_ discovery: Discovery) -> [String] {
        [
            discovery.address?.description ?? PeerNames.text(discovery.peer),
            PeerNames.rssi(discovery.rssi),
            discovery.advertisement.localName.map { PlainText.printable($0) } ?? "-",
            services(discovery.advertisement.serviceUUIDs),
        ]
    }

    private static func services(_ uuids: Set<BluetoothUUID>) -> String {
        uuids.sorted().map { uuid in
            uuid == BluetoothUUID(NearbyService.service) ? "nearby" : uuid.description
        }.joined(separator: " ")
    }

    static func json(_ discovery: Discovery) -> JSONObject {
        let advertisement = discovery.advertisement
        let manufacturer = advertisement.manufacturerData.sorted { $0.key < $1.key }.map { id, data in
            (Self.hex(UInt64(id), digits: 4), JSONValue.string(hex(data)))
        }
        let serviceData = advertisement.serviceData.sorted { $0.key < $1.key }.map { uuid, data in
            (uuid.description, JSONValue.string(hex(data)))
        }
        return .compact([
            "event": "discovered",
            "device": .string(discovery.peer),
            "address": discovery.address.map { .string($0.description) },
            "name": advertisement.localName.map(JSONValue.string),
            "rssi": discovery.rssi.map(JSONValue.int),
            "services": .array(advertisement.serviceUUIDs.sorted().map { .string($0.description) }),
            "manufacturerData": manufacturer.isEmpty ? nil : .object(JSONObject(manufacturer)),
            "serviceData": serviceData.isEmpty ? nil : .object(JSONObject(serviceData)),
            "txPower": advertisement.txPower.map(JSONValue.int),
        ])
    }

    private static func hex(_ bytes: [UInt8]) -> String { bytes.map { hex(UInt64($0), digits: 2) }.joined() }

    private static func hex(_ value: UInt64, digits: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
