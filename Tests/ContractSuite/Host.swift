// SPDX-License-Identifier: MIT

import BluetoothLE

/// What the cases' peripheral offers.
enum Offer {
    static let service = uuid(0x01)
    static let message = uuid(0x02)
    static let text = uuid(0x03)
    static let command = uuid(0x04)
    static let pair = uuid(0x05)
    static let twin = uuid(0x06)
    /// Not in `services`.
    static let laterService = uuid(0x07)
    static let nowhere = uuid(0xFF)

    static let messageID = LocalCharacteristicID(service: 0, characteristic: 0)
    static let textID = LocalCharacteristicID(service: 0, characteristic: 1)
    static let commandID = LocalCharacteristicID(service: 0, characteristic: 2)

    static let services = [
        LocalService(
            service,
            characteristics: [
                LocalCharacteristic(message, [.write, .notify]),
                LocalCharacteristic(text, .read),
                LocalCharacteristic(command, .writeWithoutResponse),
            ]
        ),
        LocalService(
            pair,
            characteristics: [LocalCharacteristic(twin, .read), LocalCharacteristic(twin, .read)]
        ),
    ]

    static let advertisement = AdvertisementRequest(localName: "contract", serviceUUIDs: [service])

    private static func uuid(_ last: UInt8) -> BluetoothUUID {
        let bytes: [UInt8] = [0x7B, 0x1E, 0x5C, 0xA0, 0x4D, 0x2F, 0x4E, 0x63, 0x9A, 0x51, 0x3C, 0x88, 0xD0, 0x17, 0x64]
        return BluetoothUUID(bytes: bytes + [last]) ?? BluetoothUUID(UInt16(last))
    }
}

/// A peripheral that is being served, with its events, and an answer for each request.
struct Host: Sendable {
    /// `nil` leaves a request without an answer.
    typealias Answers = @Sendable (PeripheralEvent) -> RequestResponse?

    let session: any PeripheralSession
    let events: Recorder<PeripheralEvent>

    /// Accepts every write, and answers every read with nothing.
    static let agreeable: Answers = { event in
        switch event {
        case .write: .accept
        case .read: .value([])
        default: nil
        }
    }

    /// Gives a long value to every read, slice by slice.
    static func telling(_ text: [UInt8]) -> Answers {
        { event in
            guard case .read(let read) = event else { return agreeable(event) }
            return read.offset <= text.count ? .value(Array(text.dropFirst(read.offset))) : .refuse(.invalidOffset)
        }
    }

    init(
        on radio: any Radio,
        answers: @escaping Answers = Host.agreeable,
        react: @escaping @Sendable (PeripheralEvent, any PeripheralSession) async -> Void = { _, _ in }
    ) async throws {
        let session = try await radio.serve(Offer.services, advertising: Offer.advertisement)
        self.session = session
        events = Recorder(session.events, clock: radio.clock) { event in
            await react(event, session)
            guard let answer = answers(event) else { return }
            switch event {
            case .read(let request): await session.respond(to: request.id, with: answer)
            case .write(let request): await session.respond(to: request.id, with: answer)
            default: break
            }
        }
    }
}

/// A central's link to the host, with what it found there.
struct Visit: Sendable {
    let connection: any PeripheralConnection
    let services: [RemoteService]
    let message: RemoteCharacteristic
    let text: RemoteCharacteristic
    let command: RemoteCharacteristic
}

extension ContractBench {
    /// Scans until the host is heard, and stops.
    func find(from radio: any Radio, _ what: String = "the host is heard") async throws -> Discovery {
        let scan = try await radio.scan(for: ScanFilter(services: [Offer.service]))
        let events = Recorder(scan.events, clock: radio.clock)
        do {
            let discovery = try await events.next(within: patience, what) { $0.discovery }
            await scan.stop()
            return discovery
        } catch {
            await scan.stop()
            throw error
        }
    }

    func visit(from radio: any Radio) async throws -> Visit {
        let discovery = try await find(from: radio)
        let connection = try await radio.connect(to: discovery.peer, timeout: patience)
        do {
            let services = try await connection.discoverServices(awaiting: Offer.message)
            let service = try require(services.first { $0.uuid == Offer.service }, "the service is found")
            let characteristics = service.characteristics
            return Visit(
                connection: connection,
                services: services,
                message: try require(characteristics.first { $0.uuid == Offer.message }, "“message” is found"),
                text: try require(characteristics.first { $0.uuid == Offer.text }, "“text” is found"),
                command: try require(characteristics.first { $0.uuid == Offer.command }, "“command” is found")
            )
        } catch {
            await connection.disconnect()
            throw error
        }
    }

    /// Serves, lets the case run, and cleans up whatever happened.
    func withHost(
        answers: @escaping Host.Answers = Host.agreeable,
        react: @escaping @Sendable (PeripheralEvent, any PeripheralSession) async -> Void = { _, _ in },
        _ body: (Host) async throws -> Void
    ) async throws {
        let host = try await Host(on: peripheral, answers: answers, react: react)
        do {
            try await body(host)
        } catch {
            await host.session.stop()
            throw error
        }
        await host.session.stop()
    }

    /// The same with a link from the central.
    func withVisit(
        answers: @escaping Host.Answers = Host.agreeable,
        react: @escaping @Sendable (PeripheralEvent, any PeripheralSession) async -> Void = { _, _ in },
        _ body: (Host, Visit) async throws -> Void
    ) async throws {
        try await withHost(answers: answers, react: react) { host in
            let visit = try await visit(from: central)
            do {
                try await body(host, visit)
            } catch {
                await visit.connection.disconnect()
                throw error
            }
            await visit.connection.disconnect()
        }
    }
}

extension ScanEvent {
    var discovery: Discovery? {
        if case .discovered(let discovery) = self { discovery } else { nil }
    }

    var isPause: Bool {
        if case .paused = self { true } else { false }
    }
}

extension PeripheralEvent {
    var writeRequest: WriteRequest? {
        if case .write(let request) = self { request } else { nil }
    }

    var readRequest: ReadRequest? {
        if case .read(let request) = self { request } else { nil }
    }

    var connected: PeerIdentifier? {
        if case .connected(let central) = self { central } else { nil }
    }

    var disconnected: PeerIdentifier? {
        if case .disconnected(let central) = self { central } else { nil }
    }

    var subscription: LocalCharacteristicID? {
        if case .subscribed(let id, _, _) = self { id } else { nil }
    }

    var unsubscription: LocalCharacteristicID? {
        if case .unsubscribed(let id, _) = self { id } else { nil }
    }

    var isServing: Bool {
        if case .serving(advertising: true, _) = self { true } else { false }
    }

    var isInterruption: Bool {
        if case .interrupted = self { true } else { false }
    }
}
