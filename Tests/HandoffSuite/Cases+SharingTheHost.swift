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
        ContractCase("A basic client that floods does not hold up an extended one", needs: [.secondCentral]) { bench in
            let payload: NearbyPayload = ["roomCode": "SWIFT42", "text": .string(String(repeating: "t", count: 4_000))]
            let admit: @Sendable (JoinRequest) async -> Admission = { request in
                request.security == .plaintext ? .reject(message: "no") : .handoff(payload)
            }
            try await bench.withHost(admit: admit) { _ in
                let alone = try await bench.join(bench.configuration(profile: .extended))
                let other = try bench.other
                let flooder = try await RawClient.connect(bench, from: other)
                _ = try await flooder.subscribe()
                let flood = Task { await flooder.flood() }
                let flooded: Handoff
                do {
                    flooded = try await bench.join(bench.configuration(profile: .extended))
                } catch {
                    flood.cancel()
                    throw error
                }
                flood.cancel()
                let written = await flood.value
                await flooder.connection.disconnect()
                try require(written > 10, "\(written) requests are no flood")
                try require(flooded.payload == payload, "the payload came as it went")
                // No longer than one exchange; on a busy machine that is no exact figure.
                let (usual, taken) = (alone.timing.exchange, flooded.timing.exchange)
                try require(taken <= usual * 2 + .seconds(1), "\(taken) in place of \(usual)")
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

extension HandoffTiming {
    /// From the link to the answer.
    fileprivate var exchange: Duration {
        answered - connected
    }
}

extension RawClient {
    /// Asks again and again, never the same, until the task is cancelled.
    ///
    /// - Returns: how often.
    fileprivate func flood() async -> Int {
        var count = 0
        while !Task.isCancelled {
            count += 1
            // Refused or not, the next one comes; with a pause in which a simulated radio's clock can move.
            try? await write(Suite.request(payload: ["n": .int(count)]))
            try? await sleep(.milliseconds(2), bench.central.clock)
        }
        return count
    }
}

extension ContractBench {
    /// Each client gets its own room where the radio notifies one central at a time. Where every subscriber hears every
    /// notification, a client that waits can take another's answer for its own: nothing in a basic handoff tells them
    /// apart (docs/protocol.md, "The host"). That is the one case that the basic profile cannot avoid.
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
