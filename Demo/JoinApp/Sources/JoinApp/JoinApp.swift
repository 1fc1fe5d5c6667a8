// SPDX-License-Identifier: MIT

import Foundation
import NearbyDiscoveryKit

/// An app that gets its table from the kiosk in front of it.
@main
struct JoinApp {
    struct Assignment: Decodable {
        var table: String
    }

    static func main() async throws {
        let client = try NearbyClient(
            NearbyClient.Configuration(
                appId: "com.example.kiosk",
                minimumRSSI: -70,
                selection: .strongest(within: .seconds(2)),
                timeout: .seconds(60)
            )
        )

        let events = client.events()
        async let log: Void = {
            for await event in events {
                switch event {
                case .scanning: print("looking for a kiosk…")
                case .candidates(let hosts): print(hosts.count, "in reach")
                case .connecting(let host): print("connecting to", host)
                case .passedOver(let host, let reason): print("passed over", host, "because", reason)
                default: break
                }
            }
        }()

        var failed = false
        do {
            let assignment = try await client.join().payload.decode(Assignment.self)
            print("your table:", assignment.table)
        } catch {
            // A `NearbyError`, or that of the decoder: a stranger's payload need not be what we expect.
            print(error)
            failed = true
        }
        await log
        // The link goes down behind our back: wait for it before the process ends.
        await client.finish()
        if failed { exit(1) }
    }
}
