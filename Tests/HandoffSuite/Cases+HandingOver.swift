// SPDX-License-Identifier: MIT

import ContractSuite
import NearbyDiscoveryKit

extension ContractCase {
    static let handingOver: [ContractCase] = [
        ContractCase("A client gets the host's payload, with its timing") { bench in
            try await bench.withHost { host in
                let handoff = try await bench.join()
                try bench.requireRoom(handoff)
                let timing = handoff.timing
                let phases = [
                    timing.seen, timing.connected, timing.resolved, timing.subscribed, timing.written, timing.answered,
                ]
                try require(phases == phases.sorted(), "the phases come one after another: \(timing)")
                try require(handoff.security == .sealed, "what protects it: \(handoff.security)")
                var kinds: [String] = []
                repeat {
                    kinds.append(try await host.events.next(within: bench.patience, "after \(kinds)") { $0.kind })
                } while kinds.last != "delivered"
                try require(kinds == ["joinRequested", "handedOff", "delivered"], "the events: \(kinds)")
            }
        },
        ContractCase("Each client gets what the app decides for it") { bench in
            try await bench.withHost(
                admit: { request in
                    .handoff(["roomCode": .string("room of \(request.payload?["name"] ?? "nobody")")])
                }
            ) { _ in
                for name in ["ada", "bob"] {
                    let payload: NearbyPayload = ["name": .string(name)]
                    let handoff = try await bench.join(bench.configuration(payload: payload))
                    try bench.requireRoom(handoff, "room of \(name)")
                }
            }
        },
        ContractCase("The app's no reaches the client with reason and words") { bench in
            try await bench.withHost(admit: { _ in .reject(.denied, message: "not today") }) { host in
                let error = try await requireNearbyError(.rejected, from: "the join") { try await bench.join() }
                try require(error.rejection?.reason == .denied, "the reason: \(error)")
                try require(error.rejection?.message == "not today", "the words: \(error)")
                let reason = try await host.events.next(within: bench.patience, "rejected") { $0.rejection }
                try require(reason == .denied, "the host's event: \(reason)")
            }
        },
        ContractCase("A host of one handoff ends by itself after it") { bench in
            let configuration = NearbyHost.Configuration(appId: Suite.appId, name: "once", maximumHandoffs: 1)
            let host = try await RunningHost.start(bench, configuration)
            do {
                try bench.requireRoom(try await bench.join())
                let result = try await within(bench.patience, bench.peripheral.clock, "the host's end") {
                    await host.run.value
                }
                try result.get()
            } catch {
                await host.stop()
                throw error
            }
        },
        ContractCase("A client that finds nobody says so when its time is up") { bench in
            let error = try await requireNearbyError(.nothingFound, from: "the join") {
                try await bench.join(bench.configuration(timeout: bench.silence))
            }
            try require(error.encounters == Encounters(), "what was met: \(error)")
        },
        ContractCase(
            "A basic handoff that is too long for the client's MTU is refused, and the app is told", needs: [.mtu]
        ) {
            bench in
            try await bench.perform(.setMTU(185))
            let long: NearbyPayload = ["roomCode": .string(String(repeating: "x", count: 250))]
            try await bench.withHost(admit: { _ in .handoff(long) }) { host in
                let basic = bench.configuration(profile: .basic)
                let error = try await requireNearbyError(.rejected, from: "the join") { try await bench.join(basic) }
                try require(error.rejection?.reason == .tooLarge, "the reason: \(error)")
                let failure = try await host.events.next(within: bench.patience, "the app is told") { $0.failure }
                try require(failure.code == .payloadTooLarge, "the app's error: \(failure)")
            }
        },
        ContractCase("Where not even a reject fits, the write itself is refused", needs: [.mtu]) { bench in
            try await bench.perform(.setMTU(23))
            try await bench.withHost { _ in
                let basic = bench.configuration(profile: .basic)
                let error = try await requireNearbyError(.rejected, from: "the join") { try await bench.join(basic) }
                try require(error.rejection?.attError == 0x80, "the ATT error: \(error)")
            }
        },
    ]
}
