// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import NearbyDiscoveryKit

extension ContractCase {
    static let cancelling: [ContractCase] = [
        ContractCase("A cancelled host has left the air") { bench in
            let host = try await RunningHost.start(bench)
            host.run.cancel()
            let result = await host.run.value
            try await requireNearbyError(.cancelled, from: "the host") { try result.get() }
            try await requireNearbyError(.nothingFound, from: "a join after that") {
                try await bench.join(bench.configuration(timeout: bench.silence))
            }
        },
        ContractCase("A cancelled search ends at once") { bench in
            let client = try NearbyClient(bench.configuration(), radio: bench.central)
            let events = Recorder(client.events(), clock: bench.central.clock)
            let join = Task { try await client.join() }
            _ = try await events.next(within: bench.patience, "scanning") { $0 == .scanning ? 1 : nil }
            join.cancel()
            try await within(bench.silence, bench.central.clock, "the search's end") {
                _ = try await requireNearbyError(.cancelled, from: "the join") { try await join.value }
            }
        },
        ContractCase("A join cancelled in the middle of the exchange leaves no link") { bench in
            let asked = Gate()
            try await bench.withHost(
                admit: { _ in
                    await asked.open()
                    try? await bench.peripheral.clock.sleep(
                        until: bench.peripheral.clock.now.advanced(by: .seconds(8)),
                        tolerance: nil
                    )
                    return .handoff(["roomCode": "late"])
                }
            ) { host in
                let join = Task { try await bench.join() }
                try await within(bench.patience, bench.central.clock, "the app is asked") { await asked.wait() }
                join.cancel()
                try await requireNearbyError(.cancelled, from: "the join") { try await join.value }
                let failure = try await host.events.next(within: bench.patience, "the host notices") { $0.failure }
                try require(failure.code == .linkFailed, "the host's event: \(failure)")
            }
        },
        ContractCase("A host or client is used once") { bench in
            let client = try NearbyClient(bench.configuration(timeout: bench.silence), radio: bench.central)
            try await requireNearbyError(.nothingFound, from: "the first join") { try await client.join() }
            try await requireNearbyError(.invalidConfiguration, from: "the second join") { try await client.join() }
        },
    ]
}

/// Counts calls, from 1.
actor Counter {
    private var count = 0

    func next() -> Int {
        count += 1
        return count
    }
}

/// Opens once; whoever waits goes through then.
actor Gate {
    private var isOpen = false
    private var waiters: [CheckedContinuation<Void, Never>] = []

    func open() {
        isOpen = true
        for waiter in waiters { waiter.resume() }
        waiters = []
    }

    func wait() async {
        if isOpen { return }
        await withCheckedContinuation { waiters.append($0) }
    }
}
