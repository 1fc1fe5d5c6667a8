// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

extension ClientSession {
    // MARK: - Links come and go

    func connect(_ request: BridgeRequest, _ address: String, _ timeout: Duration?) {
        guard connecting < Limits.connects, links.count + connecting < Limits.links else {
            return fail(request, .tooMany("connections"))
        }
        connecting += 1
        let operation = Operation()
        if let id = request.id { operations[id] = operation }
        detach { session in
            await operation.run { [session] in
                await session.run(request, operation) { session throws(BluetoothError) in
                    try await session.connect(request, address, within: timeout)
                }
            }
            await session.connectHasEnded()
        } onCancel: {
            operation.cancel()
        }
    }

    private func connectHasEnded() { connecting -= 1 }

    /// Does something that no lane waits for.
    private func detach(
        _ body: @escaping @Sendable (ClientSession) async -> Void,
        onCancel: @escaping @Sendable () -> Void = {}
    ) {
        let number = take()
        loose[number] = Task {
            await withTaskCancellationHandler {
                await body(self)
            } onCancel: {
                onCancel()
            }
            loose[number] = nil
        }
    }

    private func connect(
        _ request: BridgeRequest,
        _ address: String,
        within timeout: Duration?
    ) async throws(BluetoothError) {
        if !isExtended { try await waitForAdapter() }
        let peer = try await peer(at: address)
        let connection = try await radio.connect(to: peer, timeout: timeout ?? Limits.connect)
        let link = ClientLink(id: "conn-\(number)-\(take())", address: address, connection: connection)
        links[link.id] = link
        send(
            .connected(connection: link.id, address: address, attMTU: await connection.attMTU),
            id: request.id
        )
        Task { [weak self] in
            let reason = await connection.disconnection()
            await self?.linkEnded(link, reason)
        }
    }

    /// A device that the adapter has forgotten when it went is heard again first: the client cannot know of that.
    private func peer(at address: String) async throws(BluetoothError) -> PeerIdentifier {
        if let peer = devices[address] { return peer }
        guard !isExtended, forgotten.contains(address) else {
            throw BluetoothError(
                .peerNotFound, "no scan has reported this device", advice: "Scan first.", subject: address)
        }
        let found = try await radio.hear(within: Limits.connectWait) { $0.bridgeAddress == address }
        if Task.isCancelled || isEnding { throw .cancelled }
        guard let found else {
            throw BluetoothError(.peerNotFound, "the device was not heard again", subject: address)
        }
        devices.note(found, keeping: linkedAddresses)
        forgotten.remove(address)
        return found.peer
    }

    var linkedAddresses: Set<String> { Set(links.values.map(\.address)) }

    private func waitForAdapter() async throws(BluetoothError) {
        let deadline = ContinuousClock.now.advanced(by: Limits.connectWait)
        while status.state != .poweredOn {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero, !isEnding, !Task.isCancelled else {
                throw status.reason ?? BluetoothError(.poweredOff, "the Bluetooth adapter is off")
            }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await self.statusChange() }
                group.addTask { try? await Task.sleep(for: left) }
                await group.next()
                group.cancelAll()
            }
        }
    }

    private func linkEnded(_ link: ClientLink, _ reason: DisconnectReason) async {
        let readings = link.state.withLock { state in
            state.isClosing = true
            return state.readings.values.map(\.reader)
        }
        link.lane.close()
        // The last values first.
        for reader in readings { await reader.value }
        guard links.removeValue(forKey: link.id) != nil, !isEnding else { return }
        let words: String? =
            switch reason {
            case .local: nil
            case .remote: "the device has disconnected"
            case .timeout: "the device is no longer heard"
            case .adapterLost: "the Bluetooth adapter went away"
            case .unknown: "the link was lost"
            }
        send(.disconnected(connection: link.id, error: words, reason: reason, session: ""))
    }

    // MARK: - What is done on a link

    func onLink(_ connection: String, _ request: BridgeRequest) {
        guard let link = links[connection] else {
            if case .disconnect = request.command, disconnectCentral(request, connection) { return }
            return fail(request, BluetoothError(.notConnected, "there is no such connection", subject: connection))
        }
        if case .disconnect = request.command { return disconnect(link, request) }
        guard !link.state.withLock({ $0.isClosing }) else {
            return fail(request, BluetoothError(.disconnected, "the connection is going down", subject: connection))
        }
        let operation = Operation()
        let isQueued = enqueue(request, in: link.lane, as: operation) { session throws(BluetoothError) in
            try await session.perform(request, on: link)
        }
        // A client of the extension waits for its answers, and each of its commands has one of its own.
        guard isQueued, !isExtended, case .setNotify(let attribute, _) = request.command else { return }
        let wish = ClientLink.Wish(request: request, operation: operation)
        link.state.withLock { $0.wanted[ClientLink.Key(attribute)] = wish }
    }

    /// Takes a link down once, however often it is asked for.
    private func disconnect(_ link: ClientLink, _ request: BridgeRequest) {
        let (isFirst, isKept) = link.state.withLock { state in
            let waiting = state.disconnects ?? []
            guard waiting.count < Limits.queuedCommands else { return (false, false) }
            defer { state.disconnects = waiting + (request.id.map { [$0] } ?? []) }
            return (state.disconnects == nil, true)
        }
        guard isKept else { return fail(request, .tooMany("commands wait")) }
        guard isFirst else { return }
        let isOrderly = !isExtended
        detach { session in
            // From threads of their own, commands that the client sent before can come after this one.
            if isOrderly {
                try? await Task.sleep(for: Limits.disorder)
                await link.settle()
            }
            await link.connection.disconnect()
            await session.hasDisconnected(link)
        }
    }

    private func hasDisconnected(_ link: ClientLink) {
        let ids = link.state.withLock { state in
            defer { state.disconnects = nil }
            return state.disconnects ?? []
        }
        for id in ids { acknowledge(id) }
    }

    private func perform(_ request: BridgeRequest, on link: ClientLink) async throws(BluetoothError) {
        switch request.command {
        case .discoverServices(_, let wanted, let awaiting):
            let found = try await link.connection.discoverServices(awaiting: awaiting)
            link.state.withLock { $0.services = found }
            let told = wanted.isEmpty ? found : found.filter { wanted.contains($0.uuid) }
            let answer = BridgeEvent.servicesDiscovered(
                connection: link.id, told, attMTU: await link.connection.attMTU)
            try tellServices(told, answer, id: request.id, of: link.address)
        case .readCharacteristic(let attribute):
            let characteristic = try await find(attribute, on: link)
            let value = try await link.connection.read(characteristic)
            send(
                .characteristicRead(connection: link.id, characteristic: characteristic.uuid, value: value),
                id: request.id
            )
        case .writeCharacteristic(let attribute, let value, let withResponse):
            try await write(request, value, to: attribute, withResponse, on: link)
        case .setNotify(let attribute, let enable):
            guard isExtended else { return await applyWanted(ClientLink.Key(attribute), attribute, on: link) }
            try await setNotify(request, attribute, enable, on: link)
        default:
            break
        }
    }

    /// One line tells all services. A client hangs up on a line that is longer than the protocol lets it be, and cannot
    /// read one that lists more: how large a device's database is must not be the end of its other links.
    private func tellServices(
        _ services: [RemoteService],
        _ answer: BridgeEvent,
        id: String?,
        of device: String
    ) throws(BluetoothError) {
        func check(_ count: Int, _ what: String, _ limit: Int) throws(BluetoothError) {
            guard count > limit else { return }
            throw BluetoothError(
                .limitExceeded, "the device has \(count) \(what), and an answer at most \(limit)",
                advice: "Name those that are needed: “serviceUuids”.", subject: device)
        }
        try check(services.count, "services", BridgeLimits.services)
        let characteristics = services.reduce(0) { $0 + $1.characteristics.count }
        try check(characteristics, "characteristics", BridgeLimits.characteristics)
        let line = BridgeMessage(answer, id: id).line(isExtended: isExtended)
        // The limit does not count the line's end.
        try check(line.count - 1, "bytes of services", BridgeLimits.lineBytes)
        socket.send(line)
    }

    private func write(
        _ request: BridgeRequest,
        _ value: [UInt8],
        to attribute: RemoteAttribute,
        _ withResponse: Bool,
        on link: ClientLink
    ) async throws(BluetoothError) {
        let characteristic = try await find(attribute, on: link)
        if !isExtended { await letOvertake(attribute, characteristic, on: link) }
        try await link.connection.write(
            value, to: characteristic, type: withResponse ? .withResponse : .withoutResponse)
        if withResponse {
            send(.writeAcknowledged(connection: link.id, characteristic: characteristic.uuid), id: request.id)
        } else {
            acknowledge(request.id)
        }
    }

    /// `setNotify` has no answer in the protocol, so that a client writes without waiting for it; and as each command
    /// comes from a thread of its own, the write can be first. Who is not subscribed misses the answer to the write.
    private func letOvertake(
        _ attribute: RemoteAttribute,
        _ characteristic: RemoteCharacteristic,
        on link: ClientLink
    ) async {
        guard !characteristic.properties.isDisjoint(with: [.notify, .indicate]) else { return }
        let key = ClientLink.Key(attribute)
        let mustWait = link.state.withLock { state in
            guard state.readings[characteristic.id] == nil, state.wanted[key] == nil else { return false }
            return state.waited.insert(key).inserted
        }
        if mustWait { try? await Task.sleep(for: Limits.disorder) }
        await applyWanted(key, attribute, on: link)
    }

    private func find(
        _ attribute: RemoteAttribute,
        on link: ClientLink
    ) async throws(BluetoothError) -> RemoteCharacteristic {
        if let found = Self.find(attribute, in: link.state.withLock { $0.services } ?? []) { return found }
        // The client has not discovered, or did so in a thread that is late.
        let services = try await link.connection.discoverServices(awaiting: attribute.characteristic)
        link.state.withLock { $0.services = services }
        if let found = Self.find(attribute, in: services) { return found }
        throw BluetoothError(
            .attributeNotFound, "the device has no such characteristic",
            subject: attribute.characteristic.description)
    }

    private static func find(_ attribute: RemoteAttribute, in services: [RemoteService]) -> RemoteCharacteristic? {
        for service in services where service.uuid == attribute.service {
            let found = service.characteristics.first { characteristic in
                characteristic.uuid == attribute.characteristic
                    && (attribute.id == nil || attribute.id == characteristic.id)
            }
            if let found { return found }
        }
        return nil
    }

    // MARK: - Notifications

    /// Does what the newest `setNotify` for this characteristic asks, unless that has been done.
    private func applyWanted(
        _ key: ClientLink.Key,
        _ attribute: RemoteAttribute,
        on link: ClientLink
    ) async {
        let wanted = link.state.withLock { $0.wanted.removeValue(forKey: key) }
        guard let request = wanted?.request, case .setNotify(_, let enable) = request.command else { return }
        do throws(BluetoothError) {
            try await setNotify(request, attribute, enable, on: link)
        } catch {
            // Under its own id: it may have been overtaken by a write.
            if !isEnding { fail(request, error) }
        }
    }

    private func setNotify(
        _ request: BridgeRequest,
        _ attribute: RemoteAttribute,
        _ enable: Bool,
        on link: ClientLink
    ) async throws(BluetoothError) {
        let characteristic = try await find(attribute, on: link)
        if enable {
            try await subscribe(to: characteristic, on: link)
        } else {
            await unsubscribe(from: characteristic, on: link)
        }
        acknowledge(request.id, attMTU: await link.connection.attMTU)
    }

    private func subscribe(
        to characteristic: RemoteCharacteristic,
        on link: ClientLink
    ) async throws(BluetoothError) {
        guard link.state.withLock({ $0.readings[characteristic.id] == nil }) else { return }
        let subscription = try await link.connection.subscribe(to: characteristic)
        let reader = Task { [weak self, link = link.id] in
            for await value in subscription.values {
                await self?.send(
                    .characteristicChanged(
                        connection: link, characteristic: characteristic.uuid, id: characteristic.id, value: value)
                )
            }
        }
        link.state.withLock {
            $0.readings[characteristic.id] = ClientLink.Reading(subscription: subscription, reader: reader)
        }
    }

    private func unsubscribe(from characteristic: RemoteCharacteristic, on link: ClientLink) async {
        guard let reading = link.state.withLock({ $0.readings.removeValue(forKey: characteristic.id) }) else { return }
        await reading.subscription.cancel()
        await reading.reader.value
    }
}
