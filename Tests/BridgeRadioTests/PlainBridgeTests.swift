// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio
import ContractSuite
import EmulatorBridge
import NearbyDiscoveryKit
import SimulatedRadio
import Testing

/// A bridge that knows the protocol's file and no extension, as a Mac's: what it can do is enough for a handoff.
@Suite(.timeLimit(.minutes(2))) struct PlainBridgeTests {
    private let medium = SimulatedMedium(clock: ContinuousClock())

    private func bridge(_ radio: SimulatedRadio) async throws -> (EmulatorBridge, BridgeRadio) {
        var configuration = BridgeConfiguration(endpoint: BridgeEndpoint(host: "127.0.0.1", port: 0))
        configuration.offersExtension = false
        let bridge = try EmulatorBridge(radios: .shared(radio), configuration: configuration)
        return (bridge, BridgeRadio(try await bridge.start()))
    }

    private func handOver(
        from host: any Radio,
        to client: any Radio,
        _ profile: ProfileChoice
    ) async throws -> Handoff {
        let nearbyHost = try NearbyHost(
            NearbyHost.Configuration(appId: "a.b", payload: ["room": "SWIFT42"], profile: profile), radio: host)
        let serving = Task { try await nearbyHost.run() }
        let nearbyClient = try NearbyClient(NearbyClient.Configuration(appId: "a.b"), radio: client)
        defer { serving.cancel() }
        let handoff = try await nearbyClient.join()
        await nearbyClient.finish()
        serving.cancel()
        _ = await serving.result
        return handoff
    }

    @Test func aClientJoinsThroughIt() async throws {
        let (bridge, radio) = try await bridge(medium.addAdapter())
        let handoff = try await handOver(from: medium.addAdapter(), to: radio, .auto)
        #expect(handoff.payload["room"] == "SWIFT42")
        await radio.shutdown()
        await bridge.stop()
        #expect(medium.links.isEmpty)
    }

    @Test(arguments: [ProfileChoice.basic, .auto]) func aHostServesThroughIt(profile: ProfileChoice) async throws {
        let (bridge, radio) = try await bridge(medium.addAdapter())
        let handoff = try await handOver(from: radio, to: medium.addAdapter(), profile)
        #expect(handoff.payload["room"] == "SWIFT42")
        #expect(handoff.security == .plaintext)
        await radio.shutdown()
        await bridge.stop()
        #expect(medium.links.isEmpty)
    }

    @Test func aScanGoesOnAfterTheAdapterWasOff() async throws {
        let adapter = medium.addAdapter()
        let (bridge, radio) = try await bridge(adapter)
        let peer = try await medium.addAdapter().serve(
            [], advertising: AdvertisementRequest(serviceUUIDs: [0x180D]))
        let scan = try await radio.scan(for: ScanFilter(services: [0x180D]))
        let events = Recorder(scan.events, clock: radio.clock)
        _ = try await events.next(within: .seconds(10), "a report") { event in
            if case .discovered(let found) = event { found } else { nil }
        }
        adapter.setPowered(false)
        _ = try await events.next(within: .seconds(10), "paused") { event in
            if case .paused(let error) = event, error.code == .poweredOff { true } else { nil }
        }
        adapter.setPowered(true)
        _ = try await events.next(within: .seconds(10), "resumed") { $0 == .resumed ? true : nil }
        await scan.stop()
        await peer.stop()
        await radio.shutdown()
        await bridge.stop()
    }
}
