// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import NearbyDiscoveryKit

extension ContractCase {
    static let sharingTheHost: [ContractCase] = [
        ContractCase("Two clients at once each get their own payload", needs: [.secondCentral]) { bench in
            let (ada, bob) = try await twoAtOnce(bench, .auto)
            try bench.requireRoom(ada, "ada")
            try bench.requireRoom(bob, "bob")
        },
        ContractCase("Two basic clients at once each get a payload", needs: [.secondCentral]) { bench in
            let (ada, bob) = try await twoAtOnce(bench, .basic)
            try bench.requireOwnRoom(ada, "ada", or: "bob")
            try bench.requireOwnRoom(bob, "bob", or: "ada")
        },
        ContractCase("A client that subscribes and says nothing is in nobody's way", needs: [.secondCentral]) { bench in
            try await bench.withRawClient { _, silent in
                _ = try await silent.subscribe()
                let other = try bench.other
                try bench.requireRoom(try await bench.join(from: other))
            }
        },
        ContractCase("A second client finds the host while one is connected", needs: [.secondCentral]) { bench in
            try await bench.withRawClient { _, first in
                let other = try bench.other
                let second = try await RawClient.connect(bench, from: other)
                let answer = try await second.ask(Suite.request())
                try require(answer.type == .handoff, "the answer: \(answer)")
                await second.connection.disconnect()
                let late = try await first.ask(Suite.request())
                try require(late.type == .handoff, "the first client's answer: \(late)")
            }
        },
        ContractCase("A slow decision about one client does not hold up another", needs: [.secondCentral]) { bench in
            let clock = bench.peripheral.clock
            try await bench.withHost(
                admit: { request in
                    if request.payload?["name"] == "slow" {
                        try? await clock.sleep(until: clock.now.advanced(by: .seconds(4)), tolerance: nil)
                    }
                    return .handoff(["roomCode": .string(request.payload?["name"] ?? "nobody")])
                }
            ) { _ in
                let other = try bench.other
                async let slow = bench.join(bench.configuration(payload: ["name": "slow"]))
                async let fast = bench.join(bench.configuration(payload: ["name": "fast"]), from: other)
                try bench.requireRoom(try await fast, "fast")
                try bench.requireRoom(try await slow, "slow")
            }
        },
    ]

    private static func twoAtOnce(_ bench: ContractBench, _ profile: ProfileChoice) async throws -> (Handoff, Handoff) {
        let host = try await RunningHost.start(
            bench,
            admit: { request in .handoff(["roomCode": .string(request.payload?["name"] ?? "nobody")]) }
        )
        do {
            let other = try bench.other
            let names = ["ada", "bob"].map { bench.configuration(payload: ["name": .string($0)], profile: profile) }
            async let first = bench.join(names[0])
            async let second = bench.join(names[1], from: other)
            let both = try await (first, second)
            await host.stop()
            return both
        } catch {
            await host.stop()
            throw error
        }
    }
}

extension ContractBench {
    /// Each client gets its own room where the radio notifies one central at a time. Where every subscriber hears every
    /// notification, a client that waits can take another's answer for its own: nothing in a basic handoff tells them
    /// apart (docs/protocol.md, "Broadcast"). That is the one case that the basic profile cannot avoid.
    func requireOwnRoom(_ handoff: Handoff, _ own: String, or other: String) throws {
        switch peripheral.notificationScope {
        case .central:
            try requireRoom(handoff, own)
        case .allSubscribers:
            let code = handoff.payload["roomCode"]
            try require(code == own || code == other, "the payload: \(handoff.payload)")
        }
    }
}
