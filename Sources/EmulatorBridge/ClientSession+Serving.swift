// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

extension ClientSession {
    // MARK: - Advertisements come and go

    func advertise(_ request: BridgeRequest, _ offer: Offer) {
        let operation = Operation()
        let isQueued = enqueue(request, in: serveLane, as: operation) { session throws(BluetoothError) in
            try await session.serve(request, offer)
        }
        guard isQueued else { return }
        if !isExtended { serveOperations[offer.session]?.cancel() }
        serveOperations[offer.session] = operation
    }

    func stopAdvertise(_ request: BridgeRequest, _ key: String) {
        let isOrderly = !isExtended
        // A client's first thoughts may arrive last: its notifications are sent before the advertisement ends.
        let started = ContinuousClock.now
        let pending = serveOperations[key]
        enqueue(request, in: serveLane) { session throws(BluetoothError) in
            if isOrderly {
                try? await Task.sleep(until: started.advanced(by: Limits.disorder), clock: .continuous)
            }
            await session.endSession(key)
            session.acknowledge(request.id)
        }
        // One that still waits for its adapter would keep the lane.
        if isOrderly, status.state != .poweredOn { pending?.cancel() }
    }

    private func serve(_ request: BridgeRequest, _ offer: Offer) async throws(BluetoothError) {
        await endSession(offer.session)
        guard served.count < Limits.sessions else { throw .tooMany("advertisements") }
        guard claims?.claim(offer.claimed, for: number) ?? true else {
            throw BluetoothError(
                .busy, "another client of this bridge serves the same service on this adapter",
                advice: "Whoever scans could not tell the two apart: give each an adapter, and a bridge, of its own.")
        }
        let radio = radio
        let session: any PeripheralSession
        do throws(BluetoothError) {
            session = try await whenReady { () throws(BluetoothError) in
                try await radio.serve(offer.services, advertising: offer.advertisement)
            }
        } catch {
            claims?.release(offer.claimed, for: number)
            if !isExtended, error.code == .cancelled { return }
            throw error
        }
        let new = ServedSession(offer, session)
        served[offer.session] = new
        acknowledge(request.id)
        let reader = Task { [weak self] in
            for await event in session.events { await self?.tell(event, of: new) }
        }
        new.state.withLock { $0.reader = reader }
    }

    private func endSession(_ key: String) async {
        guard let session = served.removeValue(forKey: key) else { return }
        if !isExtended { await finishNotifications(of: session) }
        await session.stop()
        release(session)
    }

    func release(_ session: ServedSession) { claims?.release(session.offer.claimed, for: number) }

    private func finishNotifications(of session: ServedSession) async {
        session.notifications.close()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await session.notifications.end() }
            group.addTask { try? await Task.sleep(for: Limits.completion) }
            await group.next()
            group.cancelAll()
            await session.session.stop()
        }
    }

    // MARK: - What centrals do

    private func tell(_ event: PeripheralEvent, of session: ServedSession) async {
        guard served[session.key] === session, !isEnding else { return await refuse(event, of: session) }
        switch event {
        case .serving(let advertising, let degraded):
            tell(.serving(session: session.key, advertising: advertising, degraded: degraded))
        case .interrupted(let error):
            interrupted(session, error)
        case .connected(let central):
            if isExtended || isAloneOnAdapter { connection(of: central, in: session) }
        case .disconnected(let central):
            guard let id = session.state.withLock({ $0.connections.removeValue(forKey: central) }) else { return }
            send(.disconnected(connection: id, error: nil, reason: .unknown, session: session.key))
        case .read(let read):
            await tell(read, of: session)
        case .write(let write):
            await tell(write, of: session)
        case .subscribed(let place, let central, let attMTU):
            subscription(place, central, true, attMTU, of: session)
        case .unsubscribed(let place, let central):
            subscription(place, central, false, nil, of: session)
        }
    }

    /// With several sessions on one adapter, whosever they are, nobody can say whose central it is until it uses
    /// something.
    private var isAloneOnAdapter: Bool {
        guard let claims else { return true }
        return served.count == 1 && !claims.hasOthers(than: number)
    }

    private func refuse(_ event: PeripheralEvent, of session: ServedSession) async {
        switch event {
        case .read(let request): await session.session.respond(to: request.id, with: .refuse(.unlikelyError))
        case .write(let request): await session.session.respond(to: request.id, with: .refuse(.unlikelyError))
        default: break
        }
    }

    private func interrupted(_ session: ServedSession, _ error: BluetoothError) {
        let connections = session.state.withLock { state in
            defer { state.connections = [:] }
            return state.connections.values.sorted()
        }
        if isExtended {
            send(.interrupted(session: session.key, error))
        } else {
            for id in connections {
                send(.disconnected(connection: id, error: error.message, reason: .adapterLost, session: session.key))
            }
        }
    }

    private func subscription(
        _ place: LocalCharacteristicID,
        _ central: PeerIdentifier?,
        _ isSubscribed: Bool,
        _ attMTU: Int?,
        of session: ServedSession
    ) {
        guard let attribute = session.attribute(at: place) else { return }
        let id = central.map { connection(of: $0, in: session) }
        tell(
            .subscriptionChanged(
                session: session.key, attribute, connection: id, isSubscribed: isSubscribed, attMTU: attMTU)
        )
    }

    /// The central's connection id; the client is told of a central that it does not know.
    @discardableResult
    private func connection(of central: PeerIdentifier, in session: ServedSession) -> String {
        if let known = session.state.withLock({ $0.connections[central] }) { return known }
        let id = "central-\(number)-\(take())"
        session.state.withLock { $0.connections[central] = id }
        send(.connectionRequestReceived(connection: id, central: central.rawValue, session: session.key))
        return id
    }

    private func tell(_ write: WriteRequest, of session: ServedSession) async {
        guard let attribute = session.attribute(at: write.characteristic) else { return }
        let connection = connection(of: write.central, in: session)
        // In the protocol itself the client is not asked: every write is accepted, as on the Mac.
        if !isExtended { await session.session.respond(to: write.id, with: .accept) }
        send(
            .characteristicWriteReceived(
                AttributeRequest(
                    connection: connection, attribute: attribute, session: session.key,
                    request: isExtended ? keep(write.id, of: session) : nil, offset: write.offset,
                    attMTU: write.attMTU),
                value: write.value
            )
        )
    }

    private func tell(_ read: ReadRequest, of session: ServedSession) async {
        guard let attribute = session.attribute(at: read.characteristic) else { return }
        let connection = connection(of: read.central, in: session)
        guard !isExtended else {
            return send(
                .characteristicReadReceived(
                    AttributeRequest(
                        connection: connection, attribute: attribute, session: session.key,
                        request: keep(read.id, of: session), offset: read.offset, attMTU: read.attMTU)
                )
            )
        }
        let value = session.state.withLock { $0.values[read.characteristic] } ?? []
        let answer: RequestResponse =
            read.offset <= value.count ? .value(Array(value.dropFirst(read.offset))) : .refuse(.invalidOffset)
        await session.session.respond(to: read.id, with: answer)
    }

    // MARK: - What the client does

    /// - Returns: the number that the client answers with.
    private func keep(_ id: RequestID, of session: ServedSession) -> Int {
        let request = take()
        requests[request] = (session.key, id)
        requestOrder.append(request)
        // The radio has given up on the oldest long ago.
        if requestOrder.count > Limits.requests { requests[requestOrder.removeFirst()] = nil }
        return request
    }

    func respond(_ number: Int, _ response: RequestResponse) {
        guard let request = requests.removeValue(forKey: number), let session = served[request.session] else { return }
        // In the lane of notifications, which has room (see `room`): one that follows an answer must not overtake it.
        _ = session.notifications.enqueue { await session.session.respond(to: request.id, with: response) }
    }

    func notify(
        _ request: BridgeRequest,
        _ connection: String?,
        _ attribute: LocalAttribute,
        _ value: [UInt8],
        _ key: String
    ) {
        guard let session = served[key] else {
            return fail(request, BluetoothError(.notConnected, "nothing is advertised"))
        }
        var central: PeerIdentifier?
        if let connection {
            central = session.central(of: connection)
            guard central != nil else {
                return fail(
                    request, BluetoothError(.notConnected, "there is no such central", subject: connection))
            }
        } else if !isExtended {
            return fail(request, BluetoothError(.invalidArgument, "“connectionId” is missing"))
        }
        enqueue(request, in: session.notifications) { [central] client throws(BluetoothError) in
            guard let place = session.place(of: attribute) else {
                throw BluetoothError(
                    .invalidArgument, "no such characteristic is advertised",
                    subject: attribute.characteristic.description)
            }
            try await session.session.notify(value, on: place, to: central)
            session.state.withLock { $0.values[place] = value }
            client.acknowledge(request.id)
        }
    }

    /// - Returns: whether the connection is a central's.
    func disconnectCentral(_ request: BridgeRequest, _ connection: String) -> Bool {
        for session in served.values {
            guard let central = session.central(of: connection) else { continue }
            // Behind what was sent to it before.
            enqueue(request, in: session.notifications) { client throws(BluetoothError) in
                await session.session.disconnect(central)
                client.acknowledge(request.id)
            }
            return true
        }
        return false
    }
}
