// SPDX-License-Identifier: MIT

import BluetoothLE

/// Services that a bridge serves for us.
final class BridgeSession: PeripheralSession {
    private struct State {
        /// What the bridge wants to be answered, by our own number.
        var requests: [UInt64: Int] = [:]
        /// What waits for an answer longest.
        var order: [UInt64] = []
        var centrals: Set<String> = []
        var isInterrupted = false
        var isStopped = false
    }

    let key: String
    let offer: Offer
    let events: AsyncStream<PeripheralEvent>
    private let core: BridgeCore
    private let box = EventBox()
    private let state = Locked(State())

    init(_ offer: Offer, core: BridgeCore) {
        key = offer.session
        self.offer = offer
        self.core = core
        events = box.stream()
    }

    // MARK: - What the app does

    func respond(to request: RequestID, with response: RequestResponse) async {
        let number = state.withLock { $0.requests.removeValue(forKey: request.rawValue) }
        guard let number else { return }
        await core.respond(number, response)
    }

    func notify(
        _ value: [UInt8],
        on characteristic: LocalCharacteristicID,
        to central: PeerIdentifier?
    ) async throws(BluetoothError) {
        let (isStopped, isInterrupted, centrals) = state.withLock { ($0.isStopped, $0.isInterrupted, $0.centrals) }
        if isStopped { throw BluetoothError(.notConnected, "the session has been stopped") }
        guard value.count <= BridgeLimits.valueBytes else {
            throw BluetoothError(.invalidArgument, "a notification has at most \(BridgeLimits.valueBytes) bytes")
        }
        guard let attribute = attribute(at: characteristic) else {
            throw BluetoothError(.invalidArgument, "there is no such characteristic in this session")
        }
        if isInterrupted { throw BluetoothError(.resetting, "the bridge's adapter is away") }
        if let central, !centrals.contains(central.rawValue) {
            throw BluetoothError(.notConnected, "the central is not connected", subject: central.rawValue)
        }
        try await core.notify(value, attribute, to: central?.rawValue, of: self)
    }

    /// The centrals that are connected, for a bridge that cannot be told to reach all.
    var centrals: [String] { state.withLock { $0.centrals.sorted() } }

    func disconnect(_ central: PeerIdentifier) async {
        _ = try? await core.call(.disconnect(connection: central.rawValue), isCancellable: false)
    }

    func stop() async {
        let isFirst = state.withLock { state in
            defer { state.isStopped = true }
            return !state.isStopped
        }
        guard isFirst else { return }
        // A task of its own: the advertisement has to go also where the caller has been cancelled.
        await Task { [self] in await core.endSession(self) }.value
        box.finish()
    }

    var isStopped: Bool { state.withLock { $0.isStopped } }

    // MARK: - What the bridge tells

    func serving(advertising: Bool, degraded: BluetoothError?) {
        state.withLock { $0.isInterrupted = false }
        post(.serving(advertising: advertising, degraded: degraded))
    }

    func interrupt(_ error: BluetoothError) {
        let isNew = state.withLock { state in
            defer { state.isInterrupted = true }
            state.centrals = []
            state.requests = [:]
            state.order = []
            return !state.isInterrupted && !state.isStopped
        }
        if isNew { post(.interrupted(error)) }
    }

    func centralCame(_ connection: String) {
        let isNew = state.withLock { state in
            state.centrals.count < BridgeLimits.centrals && state.centrals.insert(connection).inserted
        }
        if isNew { post(.connected(PeerIdentifier(connection))) }
    }

    func centralLeft(_ connection: String) {
        if state.withLock({ $0.centrals.remove(connection) != nil }) { post(.disconnected(PeerIdentifier(connection))) }
    }

    func write(_ request: AttributeRequest, _ value: [UInt8]) {
        guard let place = place(of: request.attribute) else { return }
        post(
            .write(
                WriteRequest(
                    id: keep(request), central: PeerIdentifier(request.connection), characteristic: place,
                    value: value, offset: request.offset, attMTU: known(request.attMTU)))
        )
    }

    func read(_ request: AttributeRequest) {
        guard let place = place(of: request.attribute) else { return }
        post(
            .read(
                ReadRequest(
                    id: keep(request), central: PeerIdentifier(request.connection), characteristic: place,
                    offset: request.offset, attMTU: known(request.attMTU)))
        )
    }

    func subscription(_ attribute: LocalAttribute, _ connection: String?, _ isSubscribed: Bool, _ attMTU: Int?) {
        guard let place = place(of: attribute) else { return }
        let central = connection.map { PeerIdentifier($0) }
        post(
            isSubscribed
                ? .subscribed(place, central: central, attMTU: attMTU) : .unsubscribed(place, central: central))
    }

    /// What the bridge is told. One without the extension cannot ask us for a value: what can only be read is not offered
    /// there, so that a central does not take an empty value for ours.
    var told: Offer {
        guard !offer.isDetailed else { return offer }
        var told = offer
        told.services = offer.services.map { service in
            let characteristics = service.characteristics.map {
                LocalCharacteristic($0.uuid, $0.properties.subtracting(.read))
            }
            return LocalService(service.uuid, characteristics: characteristics.filter { !$0.properties.isEmpty })
        }
        return told
    }

    /// A bridge without the extension does not tell the ATT MTU either.
    private func known(_ attMTU: Int?) -> Int? { attMTU ?? (offer.isDetailed ? nil : BridgeLimits.assumedMTU) }

    /// A bridge without the extension does not tell of subscriptions; a central that comes has made one, or will.
    func assumeSubscription(_ connection: String) {
        for (serviceIndex, service) in offer.services.enumerated() {
            for (index, characteristic) in service.characteristics.enumerated()
            where !characteristic.properties.isDisjoint(with: [.notify, .indicate]) {
                let place = LocalCharacteristicID(service: serviceIndex, characteristic: index)
                post(.subscribed(place, central: PeerIdentifier(connection), attMTU: known(nil)))
            }
        }
    }

    private func keep(_ request: AttributeRequest) -> RequestID {
        let id = UInt64(core.newNumber())
        guard let number = request.request else { return RequestID(rawValue: id) }
        state.withLock { state in
            state.requests[id] = number
            state.order.append(id)
            if state.order.count > BridgeLimits.openRequests { state.requests[state.order.removeFirst()] = nil }
        }
        return RequestID(rawValue: id)
    }

    private func post(_ event: PeripheralEvent) {
        guard let refused = box.post(event) else { return }
        Task { await respond(to: refused, with: .refuse(.insufficientResources)) }
    }

    private func place(of attribute: LocalAttribute) -> LocalCharacteristicID? {
        if let place = attribute.place { return self.attribute(at: place) == nil ? nil : place }
        for (serviceIndex, service) in offer.services.enumerated() where service.uuid == attribute.service {
            if let index = service.characteristics.firstIndex(where: { $0.uuid == attribute.characteristic }) {
                return LocalCharacteristicID(service: serviceIndex, characteristic: index)
            }
        }
        return nil
    }

    private func attribute(at place: LocalCharacteristicID) -> LocalAttribute? {
        guard offer.services.indices.contains(place.service) else { return nil }
        let service = offer.services[place.service]
        guard service.characteristics.indices.contains(place.characteristic) else { return nil }
        return LocalAttribute(
            service: service.uuid,
            characteristic: service.characteristics[place.characteristic].uuid,
            place: offer.isDetailed ? place : nil
        )
    }
}
