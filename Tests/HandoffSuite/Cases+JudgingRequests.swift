// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import NearbyDiscoveryKit

extension ContractCase {
    /// What a stranger can write to a host, and what becomes of it.
    static let judgingRequests: [ContractCase] =
        badRequests + [
            ContractCase("A request of 508 bytes is taken") { bench in
                try await bench.withRawClient { _, client in
                    let answer = try await client.ask(padded(to: 508))
                    try require(answer.type == .handoff, "the answer: \(answer)")
                }
            },
            ContractCase("A client that wrote before it subscribed gets its answer all the same") { bench in
                try await bench.withRawClient { host, client in
                    try await client.write(Suite.request())
                    _ = try await host.events.next(within: bench.patience, "handed off") { event in
                        if case .handedOff = event { true } else { nil }
                    }
                    let answer = try await client.answer(from: try await client.subscribe())
                    try require(answer.type == .handoff, "the answer: \(answer)")
                }
            },
            ContractCase("appIds that are equal in Unicode but not in bytes are two apps") { bench in
                let configuration = NearbyHost.Configuration(appId: "caf\u{E9}", name: "suite")
                try await bench.withRawClient(configuration) { _, client in
                    let answer = try await client.ask(Suite.request(appId: "cafe\u{301}"))
                    try require(answer.rejection?.reason == .appMismatch, "the answer: \(answer)")
                }
            },
            ContractCase("A client that vanishes after each step leaves the host serving") { bench in
                try await bench.withHost { _ in
                    for step in 0..<3 {
                        let client = try await RawClient.connect(bench, from: bench.central)
                        if step >= 1 { _ = try await client.subscribe() }
                        if step >= 2 { try await client.write(Suite.request()) }
                        await client.connection.disconnect()
                        try bench.requireRoom(try await bench.join())
                    }
                }
            },
        ]

    private static let badRequests: [ContractCase] = [
        ("of 0 bytes", [], .malformed),
        ("of 1 byte", [0x7B], .malformed),
        ("of binary", (0..<64).map { UInt8(truncatingIfNeeded: $0 &* 37) }, .malformed),
        ("of another app", Suite.request(appId: "com.example.other"), .appMismatch),
        (
            "of another version", Array(#"{"type":"join_request","protocolVersion":2,"appId":"x"}"#.utf8),
            .unsupportedVersion
        ),
        ("that is a handoff", Suite.handoff("x"), .malformed),
    ].map { (name: String, bytes: [UInt8], reason: RejectReason) in
        ContractCase("A request \(name) is rejected: \(reason)") { bench in
            try await bench.withRawClient { host, client in
                let answer = try await client.ask(bytes)
                try require(answer.rejection?.reason == reason, "the answer: \(answer)")
                try require(!answer.appId.isEmpty, "a reject carries an appId")
                let told = try await host.events.next(within: bench.patience, "the app is told") { $0.rejection }
                try require(told == reason, "what the app is told: \(told)")
                // The same host, and the same link, go on.
                await client.connection.disconnect()
                try bench.requireRoom(try await bench.join())
            }
        }
    }

    private static func padded(to size: Int) -> [UInt8] {
        let empty = Suite.request(payload: ["pad": ""]).count
        return Suite.request(payload: ["pad": .string(String(repeating: "p", count: size - empty))])
    }
}
