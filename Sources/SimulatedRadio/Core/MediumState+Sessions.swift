// SPDX-License-Identifier: MIT

import BluetoothLE

extension MediumState {
    func sessionIDs(of id: AdapterID) -> [SessionID] {
        sessions.values.filter { $0.adapter == id }.map(\.id).sorted()
    }

    mutating func serve(
        _ id: AdapterID,
        _ services: [LocalService],
        _ request: AdvertisementRequest?,
        _ mailbox: Mailbox<PeripheralEvent>
    ) throws(BluetoothError) -> SessionID {
        guard let adapter = adapters[id] else { throw .adapterGone }
        guard services.count <= Limits.services,
            services.allSatisfy({ $0.characteristics.count <= Limits.characteristics })
        else { throw BluetoothError(.limitExceeded, "there are too many services or characteristics") }
        if let error = request.flatMap({ AdvertisementBudget($0).error }) { throw error }
        if let error = adapter.unavailability { throw error }
        let others = sessionIDs(of: id)
        guard others.count < Limits.sessions else {
            throw BluetoothError(.limitExceeded, "the adapter serves \(Limits.sessions) sessions")
        }
        let advertisements = others.count { sessions[$0]?.request != nil }
        if request != nil, advertisements >= adapter.configuration.maximumAdvertisements {
            throw BluetoothError(
                .advertisingFailed, "the adapter has no room for another advertisement",
                advice: "Stop another advertisement.", subject: adapter.name, cause: "Maximum advertisements reached")
        }
        let session = SessionID(rawValue: nextNumber())
        sessions[session] = SessionRecord(
            id: session,
            adapter: id,
            services: try layOut(services, after: others),
            request: request,
            mailbox: mailbox
        )
        registerSession(session)
        refresh()
        return session
    }

    /// Gives handles as a GATT database does: one for a service, two for a characteristic, one for each descriptor.
    private func layOut(
        _ services: [LocalService],
        after others: [SessionID]
    ) throws(BluetoothError) -> [SessionRecord.Service] {
        // The first handles belong to the stack's own services.
        var next = 0x0010
        for service in others.compactMap({ sessions[$0]?.services.last }) {
            next = max(next, Int(service.characteristics.last ?? service.handle) + 3)
        }
        var result: [SessionRecord.Service] = []
        for service in services {
            let size = 1 + service.characteristics.count * 3
            guard next + size < 0xFFFF else { throw BluetoothError(.limitExceeded, "there are no handles left") }
            result.append(
                SessionRecord.Service(
                    handle: UInt16(next),
                    service: service,
                    characteristics: service.characteristics.indices.map { UInt16(next + 1 + $0 * 3) }
                )
            )
            next += size
        }
        return result
    }

    mutating func registerSession(_ id: SessionID) {
        guard let session = sessions[id], !session.isRegistered else { return }
        sessions[id]?.isRegistered = true
        tell(id, .serving(advertising: session.request != nil, degraded: nil))
        databaseChanged(session.adapter)
    }

    mutating func interruptSession(_ id: SessionID, _ error: BluetoothError) {
        guard let session = sessions[id], session.isRegistered else { return }
        sessions[id]?.isRegistered = false
        tell(id, .interrupted(error))
    }

    mutating func stopSession(_ id: SessionID) {
        guard var session = sessions.removeValue(forKey: id) else { return }
        cancel(&session.advertisingTimer)
        let handles = Set(session.services.flatMap(\.characteristics))
        for link in linkIDs(of: session.adapter) where links[link]?.peripheral == session.adapter {
            links[link]?.subscribed.subtract(handles)
        }
        for request in requests.keys.sorted(by: { $0.rawValue < $1.rawValue }) where requests[request]?.session == id {
            answer(request, .refuse(.unlikelyError))
        }
        finish(session.mailbox)
        refresh()
    }

    // MARK: - Events

    mutating func tell(_ id: SessionID, _ event: PeripheralEvent) {
        guard let session = sessions[id], session.isRegistered || event.isInterruption else { return }
        let outcome = session.mailbox.post(event)
        if let wake = outcome.wake { effects.append(wake) }
        if let request = outcome.evicted?.request { answer(request, .refuse(.insufficientResources)) }
    }

    func subscribers(of characteristic: LocalCharacteristicID, in id: SessionID) -> [LinkInfo] {
        guard let session = sessions[id], let handle = session.handle(of: characteristic) else { return [] }
        return subscribedLinks(of: session.adapter, handle).compactMap { info(of: $0, at: session.adapter) }
    }

    private func subscribedLinks(of id: AdapterID, _ handle: UInt16) -> [LinkRecord] {
        links.values.filter { $0.peripheral == id && $0.subscribed.contains(handle) }.sorted { $0.id < $1.id }
    }

    mutating func tellUnsubscribed(_ handle: UInt16, _ link: LinkRecord, _ peer: PeerIdentifier) {
        for session in sessionIDs(of: link.peripheral) {
            guard let found = sessions[session]?.characteristic(at: handle) else { continue }
            tell(session, .unsubscribed(found.id, central: peer))
        }
        if let info = info(of: link, at: link.peripheral) {
            observe(link.peripheral, .unsubscribed(info, handle: handle))
        }
    }

    // MARK: - Notifications

    mutating func notify(
        _ id: SessionID,
        _ value: [UInt8],
        _ characteristic: LocalCharacteristicID,
        to central: PeerIdentifier?
    ) throws(BluetoothError) {
        guard let session = sessions[id], let adapter = adapters[session.adapter] else {
            throw BluetoothError(.notConnected, "the session has been stopped")
        }
        if let error = adapter.interruption {
            throw BluetoothError(.resetting, "the adapter is away", cause: error.message)
        }
        guard value.count <= Limits.attributeValue else {
            throw BluetoothError(.invalidArgument, "a notification has at most \(Limits.attributeValue) bytes")
        }
        guard let handle = session.handle(of: characteristic) else {
            throw BluetoothError(.invalidArgument, "there is no such characteristic in this session")
        }
        var receivers = subscribedLinks(of: session.adapter, handle)
        if let central, adapter.configuration.notificationScope == .central {
            receivers = receivers.filter { adapters[$0.central]?.peer == central }
        }
        guard !receivers.isEmpty else {
            throw BluetoothError(.notConnected, "nobody is subscribed to the characteristic")
        }
        if adapters[adapter.id]?.takeFault({ $0 == .nextNotificationIsLost ? true : nil }) == true { return }
        for link in receivers {
            let link = link.id
            // What is over the MTU is cut off without a word, as bluetoothd does.
            let sent = Array(value.prefix((links[link]?.attMTU ?? 23) - 3))
            arriveAtCentral(link) { state in
                for subscription in state.links[link]?.subscriptions[handle]?.keys.sorted() ?? [] {
                    if let mailbox = state.links[link]?.subscriptions[handle]?[subscription] {
                        state.post(sent, to: mailbox)
                    }
                }
            }
        }
    }
}

extension PeripheralEvent {
    fileprivate var isInterruption: Bool {
        if case .interrupted = self { true } else { false }
    }

    fileprivate var request: RequestID? {
        switch self {
        case .read(let request): request.id
        case .write(let request): request.id
        default: nil
        }
    }
}
