// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol
import SimulatedRadio
import Testing

@testable import NearbyDiscoveryKit

@Suite(.timeLimit(.minutes(1))) struct HostileCrowdTests {
    /// A client that changes its mind with every write, at an app that never decides.
    @Test func decisionsThatTheAppDoesNotEndAreBounded() async throws {
        let clock = ManualClock()
        let medium = SimulatedMedium(clock: clock)
        let (host, phone) = (medium.addAdapter(), medium.addAdapter())
        let asked = Locked<[CheckedContinuation<Admission, Never>]>([])
        let server = try NearbyHost(NearbyHost.Configuration(appId: "a"), radio: host)
        try await clock.run {
            let running = Task {
                try await server.run { _ in
                    await withCheckedContinuation { decision in asked.withLock { $0.append(decision) } }
                }
            }
            let scan = try await phone.scan(for: ScanFilter(services: [ServiceUUIDs.service]))
            for await _ in scan.events { break }
            await scan.stop()
            let link = try await phone.connect(to: host.peerIdentifier, timeout: .seconds(10))
            let services = try await link.discoverServices(awaiting: ServiceUUIDs.message)
            let characteristic = try #require(services.first?.characteristics.first)
            for number in 0..<3 * Limits.admissions {
                let request = Envelope.joinRequest(appId: "a", payload: ["number": .int(number)]).encoded()
                try await link.write(request, to: characteristic, type: .withResponse)
            }
            await link.disconnect()
            running.cancel()
            _ = await running.result
        }
        let decisions = asked.withLock { $0 }
        #expect(decisions.count == Limits.admissions)
        for decision in decisions { decision.resume(returning: .reject()) }
    }

    /// Somebody who changes his address with every advertisement must not keep the others off an app's list.
    @Test func theListForgetsWhoHasBeenSilentLongest() {
        var list = CandidateList()
        func hear(_ name: String) {
            let peer = PeerIdentifier(name)
            list.heard(Discovery(peer: peer, advertisement: Advertisement(localName: name), rssi: -50, time: .now))
            list.update(Candidate(peer: PeerID(name), rssi: -50, isNear: true))
        }
        hear("early")
        for number in 0..<Limits.candidates { hear("attacker \(number)") }
        hear("late")
        let names = list.snapshot.map(\.name)
        #expect(names.count == Limits.candidates)
        #expect(names.contains("late"))
        #expect(!names.contains("early"))
    }
}
