// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

/// What a link operation brought.
indirect enum LinkEvent: Sendable {
    case connected(any PeripheralConnection)
    case discovered([RemoteService])
    case helloRead([UInt8])
    case subscribed(mtu: Int?)
    case written
    case notified([UInt8], instance: Int)
    case failed(BluetoothError)
    case disconnected(DisconnectReason)
    /// The link is down, and whatever it brought before has been delivered.
    case drained(LinkEvent)

    /// Whether it says that the link is down.
    fileprivate var isEnd: Bool {
        switch self {
        case .disconnected: true
        case .failed(let error): error.code == .disconnected || error.code == .notConnected
        default: false
        }
    }
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
        /// The instances of our service, each with what it has of our characteristics.
        var instances: [[BluetoothUUID: RemoteCharacteristic]] = []
        var phase = ExchangePhase.connecting
        var tasks: [Task<Void, Never>] = []
        /// Those of the tasks that read subscriptions; they end with the link.
        var readers: [Task<Void, Never>] = []
    }

    private let radio: any Central
    private let awaited: BluetoothUUID
    private let deliver: @Sendable (AttemptID, LinkEvent) async -> Void
    private var links: [AttemptID: Link] = [:]
    private var closing: [PeerIdentifier: Closing] = [:]

    /// The end of a peer's latest link.
    private struct Closing {
        let task: Task<Void, Never>
        let isOver: Locked<Bool>
    }

    /// Peers whose links are going down, and some whose are not any more.
    var closingCount: Int { closing.count }

    /// - Parameter awaited: the characteristic without which a device is of no use.
    init(
        radio: any Central,
        awaiting awaited: BluetoothUUID,
        deliver: @escaping @Sendable (AttemptID, LinkEvent) async -> Void
    ) {
        self.radio = radio
        self.awaited = awaited
        self.deliver = deliver
    }

    /// Where the radio's answers come from.
    private func task<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Task<Value, Never> {
        Task(executorPreference: radio.taskExecutor, operation: body)
    }

    /// Connects once an earlier link to the same peer is down.
    mutating func connect(_ attempt: AttemptID, to peer: PeerIdentifier, timeout: Duration) {
        let connecting = task { [radio, deliver, earlier = closing[peer]?.task] () -> (any PeripheralConnection)? in
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
        let awaited = awaited
        operate(attempt, .discovering) { connection throws(BluetoothError) in
            let services = try await connection.discoverServices(awaiting: awaited)
            return .discovered(services.filter { $0.uuid == ServiceUUIDs.service })
        }
    }

    mutating func readHello(_ attempt: AttemptID, instance: Int) {
        guard let characteristic = characteristic(attempt, instance, ServiceUUIDs.hello) else { return }
        operate(attempt, .readingHello) { connection throws(BluetoothError) in
            .helloRead(try await connection.read(characteristic))
        }
    }

    mutating func subscribe(_ attempt: AttemptID, instance: Int) {
        subscribe(attempt, instance, ServiceUUIDs.message)
    }

    mutating func subscribeToChannel(_ attempt: AttemptID, instance: Int) {
        subscribe(attempt, instance, ServiceUUIDs.channel)
    }

    private mutating func subscribe(_ attempt: AttemptID, _ instance: Int, _ uuid: BluetoothUUID) {
        guard let characteristic = characteristic(attempt, instance, uuid) else { return }
        let deliver = deliver
        operate(attempt, .subscribing) { connection throws(BluetoothError) in
            let subscription = try await connection.subscribe(to: characteristic)
            // The basic profile has one write, whatever the MTU.
            let mtu = uuid == ServiceUUIDs.channel ? await connection.attMTU : nil
            await deliver(attempt, .subscribed(mtu: mtu))
            for await value in subscription.values { await deliver(attempt, .notified(value, instance: instance)) }
            return nil
        }
    }

    mutating func write(_ attempt: AttemptID, instance: Int, _ bytes: [UInt8]) {
        write(attempt, instance, ServiceUUIDs.message, bytes)
    }

    mutating func writeToChannel(_ attempt: AttemptID, instance: Int, _ frame: [UInt8]) {
        write(attempt, instance, ServiceUUIDs.channel, frame)
    }

    private mutating func write(_ attempt: AttemptID, _ instance: Int, _ uuid: BluetoothUUID, _ bytes: [UInt8]) {
        guard let characteristic = characteristic(attempt, instance, uuid) else { return }
        operate(attempt, .writing) { connection throws(BluetoothError) in
            try await connection.write(bytes, to: characteristic, type: .withResponse)
            return .written
        }
    }

    /// Takes the attempt's link down, or calls its attempt to connect off. Events of it are ignored from now on.
    mutating func close(_ attempt: AttemptID) {
        guard let link = links.removeValue(forKey: attempt) else { return }
        // Peers are as many as there are addresses in the air.
        closing = closing.filter { !$0.value.isOver.withLock { $0 } }
        let earlier = closing[link.peer]?.task
        let isOver = Locked(false)
        let ending = task {
            await earlier?.value
            link.connecting.cancel()
            await link.connecting.value?.disconnect()
            // Not before: to let go of a subscription would unsubscribe first, a call and two PDUs for nothing.
            for task in link.tasks { task.cancel() }
            isOver.withLock { $0 = true }
        }
        closing[link.peer] = Closing(task: ending, isOver: isOver)
    }

    /// Takes every link down; the task ends when all are.
    mutating func closeAll() -> Task<Void, Never> {
        for attempt in links.keys { close(attempt) }
        return task { [tasks = closing.values.map(\.task)] in
            for task in tasks { await task.value }
        }
    }

    /// What an event means to the machine; `nil` if its attempt is over.
    mutating func take(_ event: LinkEvent, of attempt: AttemptID) -> ExtendedExchangeInput? {
        guard var link = links[attempt] else { return nil }
        defer { if links[attempt] != nil { links[attempt] = link } }
        if event.isEnd, !link.readers.isEmpty {
            // A host may answer and leave: what it said comes before that it left.
            _ = task { [deliver, readers = link.readers] in
                for reader in readers { await reader.value }
                await deliver(attempt, .drained(event))
            }
            return nil
        }
        switch event {
        case .connected(let connection):
            link.connection = connection
            link.tasks.append(
                task { [deliver] in
                    let reason = await connection.disconnection()
                    guard !Task.isCancelled else { return }
                    await deliver(attempt, .disconnected(reason))
                }
            )
            return .connected
        case .discovered(let services):
            link.instances = services.map { service in
                Dictionary(service.characteristics.map { ($0.uuid, $0) }) { first, _ in first }
            }
            return .discovered(
                link.instances.enumerated().map { position, found in
                    ServiceInstance(
                        id: position,
                        hasMessage: found[ServiceUUIDs.message] != nil,
                        hasHello: found[ServiceUUIDs.hello] != nil && found[ServiceUUIDs.channel] != nil
                    )
                }
            )
        case .helloRead(let bytes):
            return .helloRead(bytes)
        case .subscribed(let mtu):
            return .subscribed(mtu: mtu)
        case .written:
            return .written
        case .notified(let bytes, let instance):
            return .notified(bytes, instance: instance)
        case .failed(let error):
            return Self.failure(error, in: link.phase)
        case .disconnected(let reason), .drained(.disconnected(let reason)):
            return .disconnected(LinkFailure(.disconnected, reason.sentence))
        case .drained(.failed(let error)):
            return Self.failure(error, in: link.phase)
        case .drained:
            return nil
        }
    }

    private static func failure(_ error: BluetoothError, in phase: ExchangePhase) -> ExtendedExchangeInput {
        let failure = LinkFailure(error)
        switch phase {
        case .connecting: return .connectFailed(failure)
        case .discovering: return .discoveryFailed(failure)
        case .readingHello:
            if let att = error.att { return .helloRefused(ATTErrorCode(rawValue: att.rawValue)) }
            return .helloFailed(failure)
        case .subscribing: return .subscribeFailed(failure)
        case .writing, .awaitingAnswer, .writingReceipt:
            if let att = error.att { return .writeRefused(ATTErrorCode(rawValue: att.rawValue)) }
            return .writeFailed(failure)
        }
    }

    private func characteristic(
        _ attempt: AttemptID,
        _ instance: Int,
        _ uuid: BluetoothUUID
    ) -> RemoteCharacteristic? {
        guard let link = links[attempt], link.instances.indices.contains(instance) else { return nil }
        return link.instances[instance][uuid]
    }

    private mutating func operate(
        _ attempt: AttemptID,
        _ phase: ExchangePhase,
        _ body: @escaping @Sendable (any PeripheralConnection) async throws(BluetoothError) -> LinkEvent?
    ) {
        guard let connection = links[attempt]?.connection else { return }
        links[attempt]?.phase = phase
        let operation = task { [deliver] in
            do throws(BluetoothError) {
                if let event = try await body(connection) { await deliver(attempt, event) }
            } catch {
                guard error.code != .cancelled else { return }
                await deliver(attempt, .failed(error))
            }
        }
        links[attempt]?.tasks.append(operation)
        if phase == .subscribing { links[attempt]?.readers.append(operation) }
    }
}
