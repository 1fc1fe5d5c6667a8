// SPDX-License-Identifier: MIT

import BluetoothLE
import Glibc
import NearbyDiscoveryKit
import SimulatedRadio

/// One host; clients that join it one after another, each with a radio of its own, on a clock that stands still until
/// somebody waits for it. Prints time per join and memory after each hundred.
@main
struct Joins {
    private static let appId = "com.example.joins"
    private static let blockSize = 100

    static func main() async {
        guard CommandLine.arguments.count == 2, let clients = Int(CommandLine.arguments[1]), clients >= blockSize else {
            fail("usage: Joins CLIENTS (100 or more)", status: 2)
        }
        do {
            let blocks = try await join(clients)
            print(#"{"blocks":[\#(blocks.map(\.json).joined(separator: ","))]}"#)
        } catch {
            fail("\(error)", status: 1)
        }
    }

    private static func join(_ clients: Int) async throws -> [Block] {
        let clock = ManualClock(settlingTime: .zero)
        let medium = SimulatedMedium(clock: clock)
        let host = try NearbyHost(
            NearbyHost.Configuration(appId: appId, payload: ["roomCode": "SWIFT42"]),
            radio: medium.addAdapter(name: "host")
        )
        let events = host.events()
        let serving = Task { try await host.run() }
        for await case .serving in events { break }

        var blocks: [Block] = []
        var times: [UInt64] = []
        times.reserveCapacity(blockSize)
        for number in 1...clients {
            let start = Monotonic.now()
            try await joinOnce(clock, medium)
            times.append(Monotonic.now() - start)
            if times.count == blockSize {
                blocks.append(Block(clients: number, times: times, memory: Memory.now()))
                times.removeAll(keepingCapacity: true)
            }
        }
        serving.cancel()
        _ = await serving.result
        return blocks
    }

    /// Lets one advertising interval pass, and then no more: what follows takes no time on this air, and a clock that ran
    /// ahead of a busy machine would run into time-outs.
    private static func joinOnce(_ clock: ManualClock, _ medium: SimulatedMedium) async throws {
        let client = try NearbyClient(NearbyClient.Configuration(appId: appId), radio: medium.addAdapter())
        let progress = Progress()
        let events = client.events()
        let watching = Task {
            for await event in events {
                switch event {
                case .scanning: await progress.reach(.scanning)
                case .connecting: await progress.reach(.connecting)
                default: break
                }
            }
            await progress.reach(.ended)
        }
        let joining = Task { try await client.join() }
        await progress.wait(for: .scanning)
        repeat {
            await clock.advance(by: .milliseconds(1_280))
        } while await !progress.reaches(.connecting, within: .milliseconds(20))
        let handoff = try await joining.value
        await client.finish()
        await watching.value
        guard handoff.payload["roomCode"] == "SWIFT42" else { fail("a wrong handoff", status: 1) }
    }

    private static func fail(_ text: String, status: Int32) -> Never {
        let line = Array("\(text)\n".utf8)
        write(2, line, line.count)
        exit(status)
    }
}
