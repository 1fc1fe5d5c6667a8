// SPDX-License-Identifier: MIT

import BluetoothLE

// The peripheral's half of ATT.
extension MediumState {
    /// Where a handle of an adapter leads.
    private func find(_ handle: UInt16, at id: AdapterID) -> (
        SessionRecord, LocalCharacteristicID, LocalCharacteristic
    )? {
        for session in sessionIDs(of: id) {
            guard let session = sessions[session], session.isRegistered,
                let found = session.characteristic(at: handle)
            else { continue }
            return (session, found.id, found.characteristic)
        }
        return nil
    }

    mutating func receiveRequest(_ operation: OperationID, on id: LinkID) {
        guard let link = links[id], !link.isDeaf,
            let transaction = link.transactions.first, transaction.id == operation
        else { return }
        guard let (session, place, characteristic) = find(transaction.handle, at: link.peripheral) else {
            return reply(.refuse(.invalidHandle), to: operation, on: id)
        }
        switch transaction.kind {
        case .read(let collected, _):
            guard characteristic.properties.contains(.read) else {
                return reply(.refuse(.readNotPermitted), to: operation, on: id)
            }
            if let error = adapters[link.peripheral]?.takeFault(\.readError) {
                return reply(.refuse(error), to: operation, on: id)
            }
            ask(session.id, transaction, link) { request, central, mtu in
                .read(
                    ReadRequest(
                        id: request, central: central, characteristic: place, offset: collected.count, attMTU: mtu))
            }
        case .write(let value, let written, _):
            guard characteristic.properties.contains(.write) else {
                return reply(.refuse(.writeNotPermitted), to: operation, on: id)
            }
            receiveWrite(value, from: written, transaction, session, place, link)
        case .subscribe:
            if let error = adapters[link.peripheral]?.takeFault(\.subscribeError) {
                return reply(.refuse(error), to: operation, on: id)
            }
            subscribe(transaction.handle, session, place, link)
            reply(.accept, to: operation, on: id)
        case .unsubscribe:
            if links[id]?.subscribed.remove(transaction.handle) != nil, let peer = adapters[link.central]?.peer {
                tellUnsubscribed(transaction.handle, link, peer)
            }
            reply(.accept, to: operation, on: id)
        }
    }

    private mutating func subscribe(
        _ handle: UInt16,
        _ session: SessionRecord,
        _ place: LocalCharacteristicID,
        _ link: LinkRecord
    ) {
        guard links[link.id]?.subscribed.insert(handle).inserted == true, let central = adapters[link.central]
        else { return }
        tell(session.id, .subscribed(place, central: central.peer, attMTU: serverMTU(link)))
        if let info = info(of: link, at: link.peripheral) {
            observe(link.peripheral, .subscribed(info, handle: handle))
        }
    }

    private mutating func receiveWrite(
        _ value: [UInt8],
        from written: Int,
        _ transaction: Transaction,
        _ session: SessionRecord,
        _ place: LocalCharacteristicID,
        _ link: LinkRecord
    ) {
        if adapters[link.peripheral]?.takeFault({ $0 == .nextWriteDropsLink ? true : nil }) == true {
            return takeDown(link.id, central: .timeout, peripheral: .timeout)
        }
        if let error = adapters[link.peripheral]?.takeFault(\.writeError) {
            return reply(.refuse(error), to: transaction.id, on: link.id)
        }
        let isPrepared = value.count > link.attMTU - 3
        let limit = adapters[link.peripheral].map {
            isPrepared ? $0.configuration.longestPreparedWrite : $0.configuration.longestWrite
        }
        if value.count > limit ?? Limits.attributeValue {
            return reply(.refuse(.invalidAttributeValueLength), to: transaction.id, on: link.id)
        }
        let part = Array(value[written..<written + partLength(value, from: written, on: link)])
        ask(session.id, transaction, link, isPrepared: isPrepared) { request, central, mtu in
            .write(
                WriteRequest(
                    id: request, central: central, characteristic: place, value: part, offset: written, attMTU: mtu))
        }
    }

    mutating func receiveCommand(_ value: [UInt8], _ handle: UInt16, on id: LinkID) {
        // Nobody is told of a command that cannot be served.
        guard let link = links[id], !link.isDeaf,
            let (session, place, characteristic) = find(handle, at: link.peripheral),
            characteristic.properties.contains(.writeWithoutResponse)
        else { return }
        ask(session.id, nil, handle, link) { request, central, mtu in
            .write(
                WriteRequest(id: request, central: central, characteristic: place, value: value, offset: 0, attMTU: mtu)
            )
        }
    }

    /// How much of a long write the app gets in one request.
    func partLength(_ value: [UInt8], from written: Int, on link: LinkRecord) -> Int {
        let left = value.count - written
        guard value.count > link.attMTU - 3,
            case .split(let length) = adapters[link.peripheral]?.configuration.longWrites, length > 0
        else { return left }
        return min(left, length)
    }

    private func serverMTU(_ link: LinkRecord) -> Int? {
        adapters[link.peripheral]?.configuration.tellsMTU == true ? link.attMTU : nil
    }

    // MARK: - Requests to the app

    private mutating func ask(
        _ session: SessionID,
        _ transaction: Transaction,
        _ link: LinkRecord,
        isPrepared: Bool = false,
        _ event: (RequestID, PeerIdentifier, Int?) -> PeripheralEvent
    ) {
        ask(session, transaction.id, transaction.handle, link, isPrepared: isPrepared, event)
    }

    private mutating func ask(
        _ session: SessionID,
        _ transaction: OperationID?,
        _ handle: UInt16,
        _ link: LinkRecord,
        isPrepared: Bool = false,
        _ event: (RequestID, PeerIdentifier, Int?) -> PeripheralEvent
    ) {
        guard let mailbox = sessions[session]?.mailbox, let central = adapters[link.central]?.peer else { return }
        let request = RequestID(rawValue: nextNumber())
        let timer = schedule(after: Limits.answer) { $0.answer(request, .refuse(.unlikelyError)) }
        requests[request] = RequestRecord(
            link: link.id,
            session: session,
            handle: handle,
            transaction: transaction,
            isPrepared: isPrepared,
            timer: timer
        )
        let outcome = mailbox.post(event(request, central, serverMTU(link)), isRequest: true)
        if let wake = outcome.wake { effects.append(wake) }
        if outcome.isRefused { answer(request, .refuse(.insufficientResources)) }
    }

    mutating func respond(to request: RequestID, of session: SessionID, with response: RequestResponse) {
        guard requests[request]?.session == session else { return }
        answer(request, response)
    }

    mutating func answer(_ request: RequestID, _ response: RequestResponse) {
        guard var record = requests.removeValue(forKey: request) else { return }
        cancel(&record.timer)
        guard let operation = record.transaction, let link = links[record.link] else { return }
        var response = response
        // The radio sends what fits.
        if case .value(let value) = response { response = .value(Array(value.prefix(link.attMTU - 1))) }
        reply(response, to: operation, on: record.link)
    }

    mutating func dropRequest(_ request: RequestID) {
        guard var record = requests.removeValue(forKey: request) else { return }
        cancel(&record.timer)
    }

    func details(of request: RequestID) -> RequestDetails? {
        guard let record = requests[request], let link = links[record.link],
            let info = info(of: link, at: link.peripheral)
        else { return nil }
        return RequestDetails(
            link: info,
            isCommand: record.transaction == nil,
            isPrepared: record.isPrepared,
            handle: record.handle
        )
    }

    private mutating func reply(_ response: RequestResponse, to operation: OperationID, on id: LinkID) {
        arriveAtCentral(id) { $0.receiveAnswer(response, to: operation, on: id) }
    }
}

extension Fault {
    fileprivate var readError: ATTError? {
        if case .nextRead(let error) = self { error } else { nil }
    }

    fileprivate var writeError: ATTError? {
        if case .nextWrite(let error) = self { error } else { nil }
    }

    fileprivate var subscribeError: ATTError? {
        if case .nextSubscribe(let error) = self { error } else { nil }
    }
}
