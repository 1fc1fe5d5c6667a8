// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import NearbyDiscoveryKit

/// The suite's app and what it hands over.
enum Suite {
    static let appId = "com.example.suite"
    static let service = BluetoothUUID(NearbyService.service) ?? 0
    static let message = BluetoothUUID(NearbyService.message) ?? 0
    static let messageID = LocalCharacteristicID(service: 0, characteristic: 0)

    static func handoff(_ code: String, appId: String = Suite.appId) -> [UInt8] {
        Envelope.handoff(appId: appId, sessionId: "session", payload: ["roomCode": .string(code)]).encoded()
    }

    static func reject(_ reason: RejectReason, appId: String?) -> [UInt8] {
        Envelope.reject(appId: appId, reason: reason, message: "no").encoded()
    }

    static func request(appId: String = Suite.appId, payload: JSONObject? = nil) -> [UInt8] {
        Envelope.joinRequest(appId: appId, payload: payload).encoded()
    }
}

/// A central that speaks GATT and nothing else: for what no client of ours would write.
struct RawClient: Sendable {
    let bench: ContractBench
    let connection: any PeripheralConnection
    let characteristic: RemoteCharacteristic

    static func connect(_ bench: ContractBench, from radio: any Radio) async throws -> RawClient {
        let scan = try await radio.scan(for: ScanFilter(services: [Suite.service]))
        let events = Recorder(scan.events, clock: radio.clock)
        let peer: PeerIdentifier
        do {
            peer = try await events.next(within: bench.patience, "the host is heard") { event in
                if case .discovered(let discovery) = event { discovery.peer } else { nil }
            }
        } catch {
            await scan.stop()
            throw error
        }
        await scan.stop()
        let connection = try await radio.connect(to: peer, timeout: bench.patience)
        let services = try await connection.discoverServices(awaiting: Suite.message)
        let characteristic = services.first { $0.uuid == Suite.service }?.characteristics
            .first { $0.uuid == Suite.message }
        return RawClient(
            bench: bench,
            connection: connection,
            characteristic: try require(characteristic, "the message characteristic is found")
        )
    }

    func subscribe() async throws -> Recorder<[UInt8]> {
        Recorder(try await connection.subscribe(to: characteristic).values, clock: bench.central.clock)
    }

    func write(_ bytes: [UInt8]) async throws {
        try await connection.write(bytes, to: characteristic, type: .withResponse)
    }

    /// Subscribes, writes, and gives the envelope that answers.
    func ask(_ bytes: [UInt8]) async throws -> Envelope {
        let answers = try await subscribe()
        try await write(bytes)
        return try await answer(from: answers)
    }

    func answer(from answers: Recorder<[UInt8]>) async throws -> Envelope {
        let bytes = try await answers.next(within: bench.patience, "an answer") { $0 }
        return try Envelope.decode(bytes, as: .client)
    }
}

/// A peripheral that speaks GATT and nothing else: for what no host of ours would answer.
final class RawHost: Sendable {
    /// What to answer a write with, and what to notify after that, in order.
    struct Reaction: Sendable {
        var response = RequestResponse.accept
        var notifications: [[UInt8]] = []
    }

    let session: any PeripheralSession
    let events: Recorder<PeripheralEvent>

    init(
        on radio: any Radio,
        instances: Int = 1,
        react: @escaping @Sendable (WriteRequest) -> Reaction
    ) async throws {
        let service = LocalService(
            Suite.service,
            characteristics: [LocalCharacteristic(Suite.message, [.write, .notify])]
        )
        let session = try await radio.serve(
            Array(repeating: service, count: instances),
            advertising: AdvertisementRequest(localName: "raw", serviceUUIDs: [Suite.service])
        )
        self.session = session
        events = Recorder(session.events, clock: radio.clock) { event in
            guard case .write(let request) = event else { return }
            let reaction = react(request)
            await session.respond(to: request.id, with: reaction.response)
            for bytes in reaction.notifications {
                try? await session.notify(bytes, on: request.characteristic, to: request.central)
            }
        }
    }

    /// Serves, lets the case run, and cleans up whatever happened.
    static func serving<Value>(
        on radio: any Radio,
        instances: Int = 1,
        react: @escaping @Sendable (WriteRequest) -> Reaction,
        _ body: (RawHost) async throws -> Value
    ) async throws -> Value {
        let host = try await RawHost(on: radio, instances: instances, react: react)
        do {
            let value = try await body(host)
            await host.session.stop()
            return value
        } catch {
            await host.session.stop()
            throw error
        }
    }
}
