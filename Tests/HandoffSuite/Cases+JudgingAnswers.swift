// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import NearbyDiscoveryKit

extension ContractCase {
    /// What a stranger can answer, and what the client makes of it.
    static let judgingAnswers: [ContractCase] = [
        ContractCase("A host that never answers ends in a link failure, in time") { bench in
            try await bench.withRawHost(.init()) {
                let timeout = bench.silence * 3
                // What was begun before it is over is seen to its end.
                try await within(timeout + bench.patience, bench.central.clock, "the join's end") {
                    _ = try await requireNearbyError(.linkFailed, from: "the join") {
                        try await bench.join(bench.configuration(timeout: timeout))
                    }
                }
            }
        },
        ContractCase("The first of two answers counts") { bench in
            let reaction = RawHost.Reaction(notifications: [Suite.handoff("first"), Suite.handoff("second")])
            try await bench.withRawHost(reaction) { try bench.requireRoom(try await bench.join(), "first") }
        },
        ContractCase("A handoff for another app is not taken, and the right one after it is") { bench in
            let reaction = RawHost.Reaction(
                notifications: [Suite.handoff("theirs", appId: "com.example.other"), Suite.handoff("ours")]
            )
            try await bench.withRawHost(reaction) { try bench.requireRoom(try await bench.join(), "ours") }
        },
        ContractCase("A reject for another app is taken only if nothing better comes") { bench in
            let reaction = RawHost.Reaction(
                notifications: [Suite.reject(.denied, appId: "com.example.other"), Suite.handoff("ours")]
            )
            try await bench.withRawHost(reaction) { try bench.requireRoom(try await bench.join(), "ours") }
            let alone = RawHost.Reaction(notifications: [Suite.reject(.denied, appId: "com.example.other")])
            try await bench.withRawHost(alone) {
                let error = try await requireNearbyError(.rejected, from: "the join") { try await bench.join() }
                try require(error.rejection?.reason == .denied, "the reason: \(error)")
            }
        },
        ContractCase("A truncated answer is a link failure that says so") { bench in
            let reaction = RawHost.Reaction(notifications: [Array(Suite.handoff("SWIFT42").prefix(60))])
            try await bench.withRawHost(reaction) {
                let error = try await requireNearbyError(.linkFailed, from: "the join") { try await bench.join() }
                try require(error.message.contains("60 bytes"), "the message: \(error)")
            }
        },
        ContractCase("An answer in pieces without headers is put together") { bench in
            let whole = Suite.handoff("SWIFT42")
            let pieces = stride(from: 0, to: whole.count, by: 20).map { Array(whole[$0..<min($0 + 20, whole.count)]) }
            try await bench.withRawHost(RawHost.Reaction(notifications: pieces)) {
                try bench.requireRoom(try await bench.join())
            }
        },
        ContractCase("An ATT error on the write is a rejection with its code") { bench in
            let reaction = RawHost.Reaction(response: .refuse(ATTError(rawValue: 0x81)))
            try await bench.withRawHost(reaction) {
                let error = try await requireNearbyError(.rejected, from: "the join") { try await bench.join() }
                try require(error.rejection?.attError == 0x81, "the ATT error: \(error)")
            }
        },
        ContractCase("An unknown reason is kept") { bench in
            let reaction = RawHost.Reaction(
                notifications: [Suite.reject(RejectReason(rawValue: "on_strike"), appId: Suite.appId)]
            )
            try await bench.withRawHost(reaction) {
                let error = try await requireNearbyError(.rejected, from: "the join") { try await bench.join() }
                try require(error.rejection?.reason?.rawValue == "on_strike", "the reason: \(error)")
            }
        },
        ContractCase("The second of two service instances is tried when the first serves another app") { bench in
            try await RawHost.serving(
                on: bench.peripheral,
                instances: 2,
                react: { request in
                    let first = request.characteristic.service == 0
                    return RawHost.Reaction(
                        notifications: [
                            first ? Suite.reject(.appMismatch, appId: Suite.appId) : Suite.handoff("second")
                        ]
                    )
                }
            ) { _ in
                try bench.requireRoom(try await bench.join(), "second")
            }
        },
    ]
}

extension ContractBench {
    func withRawHost(_ reaction: RawHost.Reaction, _ body: () async throws -> Void) async throws {
        try await RawHost.serving(on: peripheral, react: { _ in reaction }) { _ in try await body() }
    }
}
