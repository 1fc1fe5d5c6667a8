// SPDX-License-Identifier: MIT

import Foundation
import NearbyDiscoveryKit

/// A service on a kiosk: whoever stands before it gets a table, until all are taken.
@main
struct KioskService {
    static func main() async throws {
        let tables = Tables(free: ["A1", "A2", "B1", "B2"])
        // Each visitor gets a table of their own; this one is what the size check at start is made with.
        let host = try NearbyHost(
            NearbyHost.Configuration(appId: "com.example.kiosk", payload: ["table": "A1"], name: "Kiosk")
        )
        host.notices.forEach { print("note:", $0) }

        let events = host.events()
        async let log: Void = {
            for await event in events {
                switch event {
                case .serving(let session, _): print("serving session", session)
                case .unavailable(let error): print("waiting for Bluetooth:", error.message)
                case .delivered(let client): print("delivered to", client)
                case .failed(let client, let error): print("failed with", client, error)
                default: break
                }
            }
        }()

        let serving = Task {
            try await host.run { request in
                guard let table = await tables.take(for: request.client) else {
                    return .reject(.busy, message: "Every table is taken.")
                }
                return .handoff(["table": .string(table)])
            }
        }
        let signals = cancelOnSignals(serving)
        defer { signals.forEach { $0.cancel() } }
        do {
            try await serving.value
        } catch let error as NearbyError where error.code == .cancelled {
            print("stopped")
        } catch {
            print(error)
            exit(1)
        }
        await log
    }

    /// `systemctl stop` sends SIGTERM: the host ends in order, and leaves nothing on the air.
    private static func cancelOnSignals(_ serving: Task<Void, any Error>) -> [any DispatchSourceSignal] {
        [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { @Sendable in serving.cancel() }
            source.resume()
            return source
        }
    }
}

actor Tables {
    private var free: [String]
    private var taken: [PeerIdentifier: String] = [:]

    init(free: [String]) { self.free = free }

    /// A client that asks again keeps its table.
    func take(for client: PeerIdentifier) -> String? {
        if taken[client] == nil, !free.isEmpty { taken[client] = free.removeFirst() }
        return taken[client]
    }
}
