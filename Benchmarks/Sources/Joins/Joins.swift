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
        let clock = ManualClock()
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
            times.append(try await joinOnce(clock, medium))
            if times.count == blockSize {
                blocks.append(Block(clients: number, times: times, memory: Memory.now()))
                times.removeAll(keepingCapacity: true)
            }
        }
        serving.cancel()
        _ = await serving.result
        return blocks
    }

    /// - Returns: nanoseconds from the call of `join` to the link's end, without those between the scan's start and the
    ///   call to connect: in these it is the clock that works, until it is sure that everybody else waits.
    private static func joinOnce(_ clock: ManualClock, _ medium: SimulatedMedium) async throws -> UInt64 {
        let start = Monotonic.now()
        let progress = Progress()
        let radio = TimedCentral(medium.addAdapter(), progress: progress)
        let client = try NearbyClient(NearbyClient.Configuration(appId: appId), radio: radio)
        let joining = Task { try await client.join() }
        await progress.wait(for: .scanning)
        let advancing = Task {
            // The host advertises every 1.28 s: it is found within that, and the rest takes no time on this air.
            repeat { await clock.advance(by: .milliseconds(1_280)) } while await progress.stage < .found
        }
        let handoff = try await joining.value
        await client.finish()
        let end = Monotonic.now()
        await advancing.value
        guard handoff.payload["roomCode"] == "SWIFT42" else { fail("a wrong handoff", status: 1) }
        return await (end - progress.time(of: .found)) + (progress.time(of: .scanning) - start)
    }

    private static func fail(_ text: String, status: Int32) -> Never {
        let line = Array("\(text)\n".utf8)
        write(2, line, line.count)
        exit(status)
    }
}
