// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import NearbyDiscoveryKit

extension ContractCase {
    static let choosing: [ContractCase] = [
        ContractCase("A host of another app is left out, and the right one found", needs: [.secondCentral]) { bench in
            let other = NearbyHost.Configuration(appId: "com.example.other", name: "other")
            try await bench.withHost(other) { wrong in
                let join = Task { try await bench.join(bench.configuration(timeout: bench.patience * 2)) }
                // The client has met the wrong host before the right one is there.
                _ = try await wrong.events.next(within: bench.patience, "the wrong host is met") { $0.rejection }
                let right = NearbyHost.Configuration(appId: Suite.appId, name: "right")
                let host = try await RunningHost.start(bench, right, on: try bench.other)
                do {
                    try bench.requireRoom(try await join.value)
                } catch {
                    await host.stop()
                    throw error
                }
                await host.stop()
            }
        },
        ContractCase("Only another app's host: the error counts it") { bench in
            let other = NearbyHost.Configuration(appId: "com.example.other", name: "other")
            try await bench.withHost(other) { _ in
                let error = try await requireNearbyError(.nothingFound, from: "the join") {
                    try await bench.join(bench.configuration(timeout: bench.patience))
                }
                try require(error.encounters?.otherApp == 1, "what was met: \(error)")
            }
        },
        ContractCase("A host too far away is not joined, and counted", needs: [.rssi]) { bench in
            try await bench.perform(.setRSSI(-80))
            try await bench.withHost { _ in
                let error = try await requireNearbyError(.nothingFound, from: "the join") {
                    try await bench.join(bench.configuration(minimumRSSI: -60, timeout: bench.silence * 2))
                }
                try require(error.encounters?.tooFar == 1, "what was met: \(error)")
            }
        },
        ContractCase("A host that comes near is joined", needs: [.rssi]) { bench in
            try await bench.perform(.setRSSI(-80))
            try await bench.withHost { _ in
                let client = try NearbyClient(bench.configuration(minimumRSSI: -60), radio: bench.central)
                let events = Recorder(client.events(), clock: bench.central.clock)
                let join = Task { try await client.join() }
                _ = try await events.next(within: bench.patience, "seen from afar") { event in
                    if case .candidates(let list) = event, list.contains(where: { !$0.isNear }) { true } else { nil }
                }
                try await bench.perform(.setRSSI(-40))
                try bench.requireRoom(try await join.value)
                await client.finish()
            }
        },
        ContractCase("An RSSI of 127 is never near", needs: [.rssi]) { bench in
            try await bench.perform(.setRSSI(127))
            try await bench.withHost { _ in
                try await requireNearbyError(.nothingFound, from: "the join") {
                    try await bench.join(bench.configuration(minimumRSSI: -100, timeout: bench.silence * 2))
                }
            }
        },
        ContractCase("The app picks from the list") { bench in
            try await bench.withHost { _ in
                let client = try NearbyClient(bench.configuration(selection: .manual), radio: bench.central)
                let events = Recorder(client.events(), clock: bench.central.clock)
                let join = Task { try await client.join() }
                let candidate = try await events.next(within: bench.patience, "a candidate") { event in
                    if case .candidates(let list) = event { list.first { $0.isNear } } else { nil }
                }
                client.choose(candidate.peer)
                try bench.requireRoom(try await join.value)
                await client.finish()
            }
        },
        ContractCase("A device that was heard and is gone is not waited for past the deadline", needs: [.range]) {
            bench in
            try await bench.withHost { _ in
                let client = try NearbyClient(
                    bench.configuration(selection: .manual, timeout: bench.patience),
                    radio: bench.central
                )
                let events = Recorder(client.events(), clock: bench.central.clock)
                let join = Task { try await client.join() }
                let candidate = try await events.next(within: bench.patience, "a candidate") { event in
                    if case .candidates(let list) = event { list.first } else { nil }
                }
                try await bench.perform(.setInRange(false))
                client.choose(candidate.peer)
                try await within(bench.patience + bench.silence, bench.central.clock, "the join's end") {
                    _ = try await requireNearbyError(.linkFailed, .nothingFound, from: "the join") {
                        try await join.value
                    }
                }
                try await bench.perform(.setInRange(true))
            }
        },
    ]
}
