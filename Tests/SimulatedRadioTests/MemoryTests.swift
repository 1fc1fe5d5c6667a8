// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@testable import SimulatedRadio

@Suite struct MemoryTests {
    @Test func aMediumKeepsNothingOfThoseWhoLeft() async throws {
        let test = MediumTests()
        let (medium, host, clock) = (test.medium, test.host, test.clock)
        let session = try await host.serve(MediumTests.services, advertising: MediumTests.advertisement)
        let answering = Task { await session.acceptAll() }
        var sizes: [[Int]] = []
        for _ in 1...3 {
            try await clock.run {
                for _ in 1...20 {
                    let client = medium.addAdapter()
                    medium.setRSSI(-40, between: client, and: host)
                    let scan = try await client.scan(for: ScanFilter())
                    _ = await scan.firstDiscovery()
                    await scan.stop()
                    let connection = try await client.connect(to: host.peerIdentifier, timeout: .seconds(10))
                    guard let characteristic = try await connection.discoverServices().first?.characteristics.first
                    else { continue }
                    _ = try await connection.subscribe(to: characteristic)
                    try await connection.write([1], to: characteristic, type: .withResponse)
                    await connection.disconnect()
                }
            }
            sizes.append(medium.core.turn { $0.sizes })
        }
        #expect(sizes[0] == sizes[1] && sizes[1] == sizes[2])
        await session.stop()
        await answering.value
        #expect(medium.core.turn { $0.sizes } == [2, 2, 0, 0, 0, 0, 0, 0])
    }
}

extension MediumState {
    fileprivate var sizes: [Int] {
        [
            adapters.count, addresses.count, pairs.count, sessions.count, connects.count, links.count, requests.count,
            timeline.count,
        ]
    }
}
