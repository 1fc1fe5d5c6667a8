// SPDX-License-Identifier: MIT

import BluetoothLE

/// A link of the bridge's to a peripheral, as its GATT client.
final class BridgeLink: PeripheralConnection {
    private struct State {
        var attMTU: Int?
        var places: [String: BluetoothUUID] = [:]
        var characteristics: [String: RemoteCharacteristic] = [:]
        /// The readers of each characteristic's values, by its id.
        var readers: [String: [Int: AsyncStream<[UInt8]>.Continuation]] = [:]
        /// Characteristics that the bridge subscribes to, as far as we know.
        var subscribed: Set<String> = []
        var isEnded = false
    }

    let id: String
    let peer: PeerIdentifier
    private let core: BridgeCore
    private let down = Latch<DisconnectReason>()
    private let state: Locked<State>

    init(id: String, peer: PeerIdentifier, attMTU: Int?, core: BridgeCore) {
        self.id = id
        self.peer = peer
        self.core = core
        state = Locked(State(attMTU: attMTU))
    }

    var attMTU: Int? { get async { state.withLock { $0.attMTU } } }

    private func check() throws(BluetoothError) {
        if Task.isCancelled { throw .cancelled }
        if down.value != nil { throw BluetoothError(.notConnected, "the link is down") }
    }

    // MARK: - GATT

    func discoverServices(awaiting awaited: BluetoothUUID?) async throws(BluetoothError) -> [RemoteService] {
        try check()
        let command = BridgeCommand.discoverServices(connection: id, services: [], awaiting: awaited)
        guard case .servicesDiscovered(_, let services, _)? = try await core.call(command) else { return [] }
        return services
    }

    /// Known before whoever asked for it goes on.
    func note(_ services: [RemoteService], _ attMTU: Int?) {
        state.withLock { state in
            if let attMTU { state.attMTU = attMTU }
            state.places = [:]
            state.characteristics = [:]
            for service in services {
                for characteristic in service.characteristics {
                    state.places[characteristic.id] = service.uuid
                    state.characteristics[characteristic.id] = characteristic
                }
            }
        }
    }

    private func attribute(_ characteristic: RemoteCharacteristic) throws(BluetoothError) -> RemoteAttribute {
        guard let service = state.withLock({ $0.places[characteristic.id] }) else {
            throw BluetoothError(
                .attributeNotFound, "this link has no such characteristic", advice: "Discover the services first.",
                subject: characteristic.uuid.description)
        }
        return RemoteAttribute(
            connection: id,
            service: service,
            characteristic: characteristic.uuid,
            // "=" marks the bridge's own ids; ours are for bridges that give none.
            id: characteristic.id.hasPrefix("=") ? String(characteristic.id.dropFirst()) : nil
        )
    }

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        try check()
        let command = BridgeCommand.readCharacteristic(try attribute(characteristic))
        guard case .characteristicRead(_, _, let value)? = try await core.call(command) else { return [] }
        return value
    }

    func write(
        _ value: [UInt8],
        to characteristic: RemoteCharacteristic,
        type: WriteType
    ) async throws(BluetoothError) {
        guard value.count <= BridgeLimits.valueBytes else {
            throw BluetoothError(.invalidArgument, "a value has at most \(BridgeLimits.valueBytes) bytes")
        }
        try check()
        let command = BridgeCommand.writeCharacteristic(
            try attribute(characteristic), value: value, withResponse: type == .withResponse)
        try await core.call(command)
    }

    func subscribe(to characteristic: RemoteCharacteristic) async throws(BluetoothError) -> Subscription {
        try check()
        let attribute = try attribute(characteristic)
        let (stream, continuation) = AsyncStream.makeStream(
            of: [UInt8].self, bufferingPolicy: .bufferingNewest(BridgeLimits.subscriptionValues))
        let reader = core.newNumber()
        // First, so that nothing is lost that comes before the answer.
        let isEnded = state.withLock { state in
            if !state.isEnded { state.readers[characteristic.id, default: [:]][reader] = continuation }
            return state.isEnded
        }
        if isEnded { throw BluetoothError(.notConnected, "the link is down") }
        do throws(BluetoothError) {
            let answer = try await core.call(.setNotify(attribute, enable: true))
            state.withLock { state in
                state.subscribed.insert(characteristic.id)
                if case .done(let attMTU?, _)? = answer { state.attMTU = attMTU }
            }
        } catch {
            // Somebody may have left the unsubscribing to this reader.
            if remove(reader, of: characteristic) { Task { await unsubscribe(from: characteristic, attribute) } }
            throw error
        }
        return Subscription(values: stream) { [self] in
            guard remove(reader, of: characteristic) else { return }
            // A task of its own: the caller's may be cancelled, and the peer is to be told all the same.
            await Task { await self.unsubscribe(from: characteristic, attribute) }.value
        }
    }

    /// Unless there is a reader again by the time that this is sent: what it asks for can have been sent before, and it
    /// would never get a value. One that comes later asks later.
    private func unsubscribe(from characteristic: RemoteCharacteristic, _ attribute: RemoteAttribute) async {
        _ = try? await core.call(.setNotify(attribute, enable: false)) { [state] in
            state.withLock { state in
                guard !state.isEnded, state.readers[characteristic.id]?.isEmpty != false else { return false }
                return state.subscribed.remove(characteristic.id) != nil
            }
        }
    }

    /// - Returns: whether it was the last.
    private func remove(_ reader: Int, of characteristic: RemoteCharacteristic) -> Bool {
        let (continuation, isLast) = state.withLock { state in
            let continuation = state.readers[characteristic.id]?.removeValue(forKey: reader)
            let isLast = continuation != nil && state.readers[characteristic.id]?.isEmpty == true
            return (continuation, isLast)
        }
        continuation?.finish()
        return isLast
    }

    /// A notification. Without an id it may be any characteristic of that UUID that is subscribed to.
    func receive(_ value: [UInt8], _ uuid: BluetoothUUID, id: String?) {
        let readers = state.withLock { state -> [AsyncStream<[UInt8]>.Continuation] in
            let key =
                id.map { "=" + $0 }
                ?? state.readers.keys.sorted().first { state.characteristics[$0]?.uuid == uuid }
            // In the order in which they subscribed, so that nobody has a value before who has waited longer.
            return key.flatMap { state.readers[$0] }.map { $0.sorted { $0.key < $1.key }.map(\.value) } ?? []
        }
        for reader in readers { reader.yield(value) }
    }

    // MARK: - The end

    func disconnect() async {
        guard down.value == nil else { return }
        let (core, id, down) = (core, id, down)
        // A task of its own: the link has to go also where the caller has been cancelled.
        await Task {
            let answer = Task { _ = try? await core.call(.disconnect(connection: id), within: BridgeLimits.takeDown) }
            let patience = Task {
                try? await Task.sleep(for: BridgeLimits.takeDown)
                if !Task.isCancelled { await core.linkEnded(id, .local) }
            }
            _ = await down.value(orWhenCancelled: .local)
            patience.cancel()
            await answer.value
        }.value
    }

    func disconnection() async -> DisconnectReason { await down.value(orWhenCancelled: .local) }

    func end(_ reason: DisconnectReason) {
        let readers = state.withLock { state in
            state.isEnded = true
            defer { state.readers = [:] }
            return state.readers.values.flatMap(\.values)
        }
        for reader in readers { reader.finish() }
        down.set(reason)
    }
}

extension BridgeCore {
    func connect(
        to peer: PeerIdentifier,
        timeout: Duration
    ) async throws(BluetoothError) -> BridgeLink {
        retain()
        defer { release() }
        let limit = min(max(timeout, .zero), BridgeLimits.connectTimeout)
        let command = BridgeCommand.connect(address: peer.rawValue, timeout: limit)
        let answer = try await call(command, within: limit + BridgeLimits.connectGrace)
        guard case .connected(let connection, _, _)? = answer else {
            throw BluetoothError(.connectionFailed, "the bridge has not connected", subject: peer.rawValue)
        }
        guard let link = links[connection] else {
            throw BluetoothError(.connectionFailed, "the link went down at once", subject: peer.rawValue)
        }
        guard !Task.isCancelled else {
            await link.disconnect()
            throw .cancelled
        }
        return link
    }
}
