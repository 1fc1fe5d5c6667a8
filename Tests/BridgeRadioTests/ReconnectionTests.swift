// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio
import ContractSuite
import EmulatorBridge
import SimulatedRadio
import Testing

/// The bridge goes and comes back.
@Suite(.timeLimit(.minutes(2))) struct ReconnectionTests {
    private let medium = SimulatedMedium(clock: ContinuousClock())

    private func start(_ radio: SimulatedRadio, port: Int = 0) async throws -> (EmulatorBridge, BridgeEndpoint) {
        let endpoint = BridgeEndpoint(host: "127.0.0.1", port: port)
        let bridge = try EmulatorBridge(
            radios: .shared(radio), configuration: BridgeConfiguration(endpoint: endpoint))
        return (bridge, try await bridge.start())
    }

    @Test func scansAndSessionsOutliveTheBridge() async throws {
        let (hostAdapter, phoneAdapter) = (medium.addAdapter(), medium.addAdapter())
        let (bridge, endpoint) = try await start(hostAdapter)
        let (phoneBridge, phoneEndpoint) = try await start(phoneAdapter)
        let (host, phone) = (BridgeRadio(endpoint), BridgeRadio(phoneEndpoint))
        let service = LocalService(0x180D, characteristics: [LocalCharacteristic(0x2A37, [.read])])
        let session = try await host.serve([service], advertising: AdvertisementRequest(serviceUUIDs: [0x180D]))
        let events = Recorder(session.events, clock: host.clock)
        let scan = try await phone.scan(for: ScanFilter(services: [0x180D]))
        let reports = Recorder(scan.events, clock: phone.clock)
        let serving: @Sendable (PeripheralEvent) -> Bool? = { event in
            if case .serving(advertising: true, _) = event { true } else { nil }
        }
        let heard: @Sendable (ScanEvent) -> PeerIdentifier? = { event in
            if case .discovered(let found) = event { found.peer } else { nil }
        }
        _ = try await events.next(within: .seconds(10), "serving", serving)
        let peer = try await reports.next(within: .seconds(10), "heard", heard)
        let link = try await phone.connect(to: peer, timeout: .seconds(10))
        await phoneBridge.stop()
        await bridge.stop()
        #expect(await link.disconnection() == .adapterLost)
        _ = try await events.next(within: .seconds(10), "interrupted") { event in
            if case .interrupted = event { true } else { nil }
        }
        _ = try await reports.next(within: .seconds(10), "paused") { event in
            if case .paused = event { true } else { nil }
        }
        let (again, _) = try await start(hostAdapter, port: endpoint.port)
        let (phoneAgain, _) = try await start(phoneAdapter, port: phoneEndpoint.port)
        _ = try await events.next(within: .seconds(20), "serving again", serving)
        _ = try await reports.next(within: .seconds(20), "resumed") { $0 == .resumed ? true : nil }
        while await reports.take(heard) != nil {}
        _ = try await reports.next(within: .seconds(10), "heard again", heard)
        await phone.shutdown()
        await host.shutdown()
        await again.stop()
        await phoneAgain.stop()
        #expect(medium.links.isEmpty)
    }

    @Test func whatIsNoBridgeIsNamed() async throws {
        let radio = BridgeRadio(BridgeEndpoint(host: "127.0.0.1", port: 1))
        try await requireError(.serviceUnavailable, from: "a scan") { try await radio.scan(for: ScanFilter()) }
        let statuses = Recorder(radio.adapterStatuses(), clock: radio.clock)
        let status = try await statuses.next(within: .seconds(10), "a status") { $0.reason }
        #expect(status.message.contains("127.0.0.1:1") && status.advice?.contains("nearby bridge") == true)
        await radio.shutdown()
    }

    @Test(arguments: [nil, "wrong"] as [String?]) func aMissingTokenIsUnauthorized(token: String?) async throws {
        let bridge = try EmulatorBridge(
            radios: .shared(medium.addAdapter()),
            configuration: BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: 0), token: "secret"))
        let radio = BridgeRadio(try await bridge.start(), token: token)
        try await requireError(.unauthorized, from: "a scan") { try await radio.scan(for: ScanFilter()) }
        await radio.shutdown()
        await bridge.stop()
    }

    @Test func anUnusedRadioIsReleased() async throws {
        let (bridge, endpoint) = try await start(medium.addAdapter())
        do {
            let radio = BridgeRadio(endpoint)
            await (try await radio.scan(for: ScanFilter())).stop()
            #expect(bridge.clientCount == 1)
        }
        try await within(.seconds(10), ContinuousClock(), "its connection ends") {
            while bridge.clientCount > 0 { try await Task.sleep(for: .milliseconds(5)) }
        }
        await bridge.stop()
    }
}
