// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyDiscoveryKit
import SimulatedRadio
import Testing

/// The facade with the names of iOS and Android.
@Suite struct FacadeTests {
    private static let appId = "com.example.facade"

    private struct Pair {
        let clock = ManualClock()
        let medium: SimulatedMedium
        let host: NearbyDiscoveryClient
        let client: NearbyDiscoveryClient
        let hostRadio: SimulatedRadio
        let clientRadio: SimulatedRadio

        init() {
            medium = SimulatedMedium(clock: clock)
            hostRadio = medium.addAdapter()
            clientRadio = medium.addAdapter()
            host = NearbyDiscoveryClient(radio: hostRadio)
            client = NearbyDiscoveryClient(radio: clientRadio)
        }
    }

    private static func events(of client: NearbyDiscoveryClient) -> AsyncStream<NearbyDiscoveryClient.Event> {
        let (stream, continuation) = AsyncStream.makeStream(of: NearbyDiscoveryClient.Event.self)
        client.onEvent = { continuation.yield($0) }
        return stream
    }

    @Test func theThreeLinesOfTheReadmeWork() async throws {
        let pair = Pair()
        let hostEvents = Self.events(of: pair.host)
        let clientEvents = Self.events(of: pair.client)
        let (states, code) = try await pair.clock.run {
            pair.host.startHosting(appId: Self.appId, sessionId: "session", payload: ["roomCode": "SWIFT42"])
            for await event in hostEvents where event == .stateChanged(.hosting) { break }
            pair.client.startScanning(appId: Self.appId)
            var states: [String] = []
            var code: String?
            for await event in clientEvents {
                switch event {
                case .payloadReceived(let message): code = message.payload?["roomCode"]
                case .stateChanged(let state): states.append("\(state)")
                default: Issue.record("\(event)")
                }
                if states.last == "idle" { break }
            }
            return (states, code)
        }
        #expect(states == ["scanning", "connecting", "connected", "idle"])
        #expect(code == "SWIFT42")
        let hostStates = try await pair.clock.run {
            pair.host.stop()
            var states: [String] = []
            for await event in Self.rest(hostEvents) { states.append(event) }
            return states
        }
        #expect(hostStates.last == "idle")
    }

    /// The names of the state changes up to `idle`.
    private static func rest(_ events: AsyncStream<NearbyDiscoveryClient.Event>) -> AsyncStream<String> {
        AsyncStream { continuation in
            Task {
                for await event in events {
                    guard case .stateChanged(let state) = event else { continue }
                    continuation.yield("\(state)")
                    if state == .idle { break }
                }
                continuation.finish()
            }
        }
    }

    @Test func anAdapterThatIsOffIsAnErrorAndTheNextStartIsFree() async throws {
        let pair = Pair()
        pair.clientRadio.setPowered(false)
        let events = Self.events(of: pair.client)
        let seen = try await pair.clock.run {
            pair.client.startScanning(appId: Self.appId)
            var seen: [String] = []
            for await event in events {
                switch event {
                case .error(let error):
                    seen.append("\(error.code)")
                    pair.clientRadio.setPowered(true)
                    pair.client.startScanning(appId: Self.appId)
                case .stateChanged(let state): seen.append("\(state)")
                default: break
                }
                if seen.last == "scanning" { break }
            }
            return seen
        }
        #expect(seen == ["poweredOff", "scanning"])
    }

    @Test func startingAnotherThingEndsTheOneBefore() async throws {
        let pair = Pair()
        let events = Self.events(of: pair.client)
        let states = try await pair.clock.run {
            pair.client.startScanning(appId: Self.appId)
            for await event in events where event == .stateChanged(.scanning) { break }
            pair.client.startHosting(appId: Self.appId, sessionId: "s", payload: [:])
            var states: [NearbyDiscoveryClient.State] = []
            for await event in events {
                if case .stateChanged(let state) = event { states.append(state) }
                if states.last == .hosting { break }
            }
            return states
        }
        #expect(states == [.idle, .hosting])
        #expect(!pair.client.usingBridge)
    }

    @Test func aFacadeThatNobodyHoldsStops() async throws {
        let clock = ManualClock()
        let medium = SimulatedMedium(clock: clock)
        let radio = medium.addAdapter()
        var facade: NearbyDiscoveryClient? = NearbyDiscoveryClient(radio: radio)
        let events = Self.events(of: try #require(facade))
        facade?.startHosting(appId: Self.appId, sessionId: "s", payload: [:])
        try await clock.run {
            for await event in events where event == .stateChanged(.hosting) { break }
        }
        facade = nil
        let states = try await clock.run {
            var states: [String] = []
            for await state in Self.rest(events) { states.append(state) }
            return states
        }
        #expect(states == ["idle"])
    }
}
