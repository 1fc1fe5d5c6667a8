// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

/// What a link operation brought.
enum LinkEvent: Sendable {
    case connected(any PeripheralConnection)
    case discovered([RemoteCharacteristic])
    case subscribed(instance: Int)
    case written
    case notified([UInt8], instance: Int)
    case failed(BluetoothError)
    case disconnected(DisconnectReason)
}

/// The client's links by attempt: starts their operations, and takes them down.
///
/// Value semantics are not wanted here and not given: the driver holds the one copy.
struct LinkTable {
    private struct Link {
        let peer: PeerIdentifier
        /// The connection once there is one; cancelling it calls the attempt to connect off.
        let connecting: Task<(any PeripheralConnection)?, Never>
        var connection: (any PeripheralConnection)?
        var characteristics: [RemoteCharacteristic] = []
        var phase = ExchangePhase.connecting
        var tasks: [Task<Void, Never>] = []
    }

    private let radio: any Central
    private let deliver: @Sendable (AttemptID, LinkEvent) async -> Void
    private var links: [AttemptID: Link] = [:]
    private var closing: [PeerIdentifier: Task<Void, Never>] = [:]

    init(radio: any Central, deliver: @escaping @Sendable (AttemptID, LinkEvent) async -> Void) {
        self.radio = radio
        self.deliver = deliver
    }

    /// Connects once an earlier link to the same peer is down.
    mutating func connect(_ attempt: AttemptID, to peer: PeerIdentifier, timeout: Duration) {
        let connecting = Task { [radio, deliver, earlier = closing[peer]] () -> (any PeripheralConnection)? in
            await earlier?.value
            do throws(BluetoothError) {
                let connection = try await radio.connect(to: peer, timeout: timeout)
                await deliver(attempt, .connected(connection))
                return connection
            } catch {
                await deliver(attempt, .failed(error))
                return nil
            }
        }
        links[attempt] = Link(peer: peer, connecting: connecting)
    }

    mutating func discover(_ attempt: AttemptID) {
        operate(attempt, .discovering) { connection throws(BluetoothError) in
            let services = try await connection.discoverServices(awaiting: ServiceUUIDs.message)
            return .discovered(
                services.filter { $0.uuid == ServiceUUIDs.service }
                    .flatMap(\.characteristics)
                    .filter { $0.uuid == ServiceUUIDs.message }
            )
        }
    }

    mutating func subscribe(_ attempt: AttemptID, instance: Int) {
        guard let characteristic = characteristic(attempt, instance) else { return }
        let deliver = deliver
        operate(attempt, .subscribing) { connection throws(BluetoothError) in
            let subscription = try await connection.subscribe(to: characteristic)
            await deliver(attempt, .subscribed(instance: instance))
            for await value in subscription.values { await deliver(attempt, .notified(value, instance: instance)) }
            return nil
        }
    }

    mutating func write(_ attempt: AttemptID, instance: Int, _ bytes: [UInt8]) {
        guard let characteristic = characteristic(attempt, instance) else { return }
        operate(attempt, .writing) { connection throws(BluetoothError) in
            try await connection.write(bytes, to: characteristic, type: .withResponse)
            return .written
        }
    }

    /// Takes the attempt's link down, or calls its attempt to connect off. Events of it are ignored from now on.
    mutating func close(_ attempt: AttemptID) {
        guard let link = links.removeValue(forKey: attempt) else { return }
        for task in link.tasks { task.cancel() }
        let earlier = closing[link.peer]
        closing[link.peer] = Task {
            await earlier?.value
            link.connecting.cancel()
            await link.connecting.value?.disconnect()
        }
    }

    /// Takes every link down; the task ends when all are.
    mutating func closeAll() -> Task<Void, Never> {
        for attempt in links.keys { close(attempt) }
        return Task { [tasks = Array(closing.values)] in
            for task in tasks { await task.value }
        }
    }

    /// What an event means to the machine; `nil` if its attempt is over.
    mutating func take(_ event: LinkEvent, of attempt: AttemptID) -> ExchangeInput? {
        guard var link = links[attempt] else { return nil }
        defer { if links[attempt] != nil { links[attempt] = link } }
        switch event {
        case .connected(let connection):
            link.connection = connection
            link.tasks.append(
                Task { [deliver] in
                    let reason = await connection.disconnection()
                    guard !Task.isCancelled else { return }
                    await deliver(attempt, .disconnected(reason))
                }
            )
            return .connected
        case .discovered(let characteristics):
            link.characteristics = characteristics
            return .discovered(instances: Array(characteristics.indices))
        case .subscribed:
            return .subscribed
        case .written:
            return .written
        case .notified(let bytes, let instance):
            return .notified(bytes, instance: instance)
        case .failed(let error):
            return Self.failure(error, in: link.phase)
        case .disconnected(let reason):
            return .disconnected(LinkFailure(.disconnected, reason.sentence))
        }
    }

    private static func failure(_ error: BluetoothError, in phase: ExchangePhase) -> ExchangeInput {
        let failure = LinkFailure(error)
        switch phase {
        case .connecting: return .connectFailed(failure)
        case .discovering: return .discoveryFailed(failure)
        case .subscribing: return .subscribeFailed(failure)
        case .writing, .awaitingAnswer:
            if let att = error.att { return .writeRefused(ATTErrorCode(rawValue: att.rawValue)) }
            return .writeFailed(failure)
        }
    }

    private func characteristic(_ attempt: AttemptID, _ instance: Int) -> RemoteCharacteristic? {
        guard let link = links[attempt], link.characteristics.indices.contains(instance) else { return nil }
        return link.characteristics[instance]
    }

    private mutating func operate(
        _ attempt: AttemptID,
        _ phase: ExchangePhase,
        _ body: @escaping @Sendable (any PeripheralConnection) async throws(BluetoothError) -> LinkEvent?
    ) {
        guard let connection = links[attempt]?.connection else { return }
        links[attempt]?.phase = phase
        let task = Task { [deliver] in
            do throws(BluetoothError) {
                if let event = try await body(connection) { await deliver(attempt, event) }
            } catch {
                guard error.code != .cancelled else { return }
                await deliver(attempt, .failed(error))
            }
        }
        links[attempt]?.tasks.append(task)
    }
}
