// SPDX-License-Identifier: MIT

import BluetoothLE

// The central's half of ATT. One request at a time is on air; the others queue.
extension MediumState {
    func requireLink(_ id: LinkID) throws(BluetoothError) -> LinkRecord {
        guard let link = links[id] else { throw BluetoothError(.notConnected, "the link is down") }
        return link
    }

    mutating func read(
        _ id: LinkID,
        _ characteristic: RemoteCharacteristic,
        _ promise: Promise<[UInt8]>
    ) throws(BluetoothError) -> OperationID {
        guard characteristic.properties.contains(.read) else {
            throw BluetoothError(.notSupported, "the characteristic cannot be read")
        }
        return try enqueue(.read(collected: [], promise), characteristic, on: id)
    }

    mutating func write(
        _ id: LinkID,
        _ value: [UInt8],
        _ characteristic: RemoteCharacteristic,
        _ type: WriteType,
        _ promise: Promise<Void>
    ) throws(BluetoothError) -> OperationID {
        let link = try requireLink(id)
        guard value.count <= Limits.attributeValue else {
            throw BluetoothError(.invalidArgument, "a value has at most \(Limits.attributeValue) bytes")
        }
        switch type {
        case .withResponse:
            guard characteristic.properties.contains(.write) else {
                throw BluetoothError(.notSupported, "the characteristic cannot be written with response")
            }
            return try enqueue(.write(value: value, written: 0, promise), characteristic, on: id)
        case .withoutResponse:
            guard characteristic.properties.contains(.writeWithoutResponse) else {
                throw BluetoothError(.notSupported, "the characteristic cannot be written without response")
            }
            guard value.count <= link.attMTU - 3 else {
                throw BluetoothError(
                    .invalidArgument, "a write without response has at most \(link.attMTU - 3) bytes on this link")
            }
            let handle = try handle(of: characteristic)
            arriveAtPeripheral(id) { $0.receiveCommand(value, handle, on: id) }
            complete(promise, .success(()))
            return OperationID(rawValue: nextNumber())
        }
    }

    mutating func subscribe(
        _ id: LinkID,
        _ characteristic: RemoteCharacteristic,
        _ mailbox: Mailbox<[UInt8]>,
        _ promise: Promise<SubscriptionID>
    ) throws(BluetoothError) -> OperationID {
        guard !characteristic.properties.isDisjoint(with: [.notify, .indicate]) else {
            throw BluetoothError(.notSupported, "the characteristic does not notify")
        }
        let handle = try handle(of: characteristic)
        let subscription = SubscriptionID(rawValue: nextNumber())
        let operation = try enqueue(.subscribe(subscription, promise), characteristic, on: id) { state in
            // Before the answer: a notification may come first, and is kept.
            state.links[id]?.subscriptions[handle, default: [:]][subscription] = mailbox
        }
        return operation
    }

    mutating func unsubscribe(_ id: LinkID, _ subscription: SubscriptionID) {
        guard let link = links[id] else { return }
        for (handle, readers) in link.subscriptions {
            guard let mailbox = readers[subscription] else { continue }
            finish(mailbox)
            links[id]?.subscriptions[handle]?[subscription] = nil
            guard readers.count == 1 else { return }
            links[id]?.subscriptions[handle] = nil
            _ = try? enqueue(.unsubscribe, handle, on: id)
            return
        }
    }

    /// The caller waits no longer.
    mutating func cancel(_ operation: OperationID, on id: LinkID) {
        guard let link = links[id] else { return }
        if var discovery = links[id]?.discoveries.removeValue(forKey: operation) {
            cancel(&discovery.timer)
            complete(discovery.promise, .failure(.cancelled))
        }
        guard let index = link.transactions.firstIndex(where: { $0.id == operation && !$0.isCancelled }) else { return }
        let transaction = link.transactions[index]
        if transaction.isSent {
            links[id]?.transactions[index].isCancelled = true
        } else {
            links[id]?.transactions.remove(at: index)
        }
        fail(transaction, .cancelled)
        if case .subscribe(let subscription, _) = transaction.kind { unsubscribe(id, subscription) }
    }

    func handle(of characteristic: RemoteCharacteristic) throws(BluetoothError) -> UInt16 {
        guard let handle = UInt16(characteristic.id, radix: 16) else {
            throw BluetoothError(.attributeNotFound, "the characteristic is not one of this link")
        }
        return handle
    }

    // MARK: - The queue

    @discardableResult
    private mutating func enqueue(
        _ kind: Transaction.Kind,
        _ characteristic: RemoteCharacteristic,
        on id: LinkID,
        _ prepare: (inout MediumState) -> Void = { _ in }
    ) throws(BluetoothError) -> OperationID {
        try enqueue(kind, try handle(of: characteristic), on: id, prepare)
    }

    private mutating func enqueue(
        _ kind: Transaction.Kind,
        _ handle: UInt16,
        on id: LinkID,
        _ prepare: (inout MediumState) -> Void = { _ in }
    ) throws(BluetoothError) -> OperationID {
        let link = try requireLink(id)
        guard link.transactions.count < Limits.queuedTransactions else { throw .tooManyOperations }
        let operation = OperationID(rawValue: nextNumber())
        links[id]?.transactions.append(Transaction(id: operation, handle: handle, kind: kind))
        prepare(&self)
        sendNext(on: id)
        return operation
    }

    private mutating func sendNext(on id: LinkID) {
        guard let link = links[id], let transaction = link.transactions.first, !transaction.isSent else { return }
        links[id]?.transactions[0].isSent = true
        let operation = transaction.id
        var pdus = 1
        if case .write(let value, 0, _) = transaction.kind, value.count > link.attMTU - 3 {
            // Prepared writes carry MTU-5 bytes each, and all but the last wait for their answer.
            pdus = 2 * ((value.count + link.attMTU - 6) / (link.attMTU - 5)) + 1
        }
        arriveAtPeripheral(id, pdus: pdus) { $0.receiveRequest(operation, on: id) }
    }

    /// The peripheral's answer has arrived.
    mutating func receiveAnswer(_ answer: RequestResponse, to operation: OperationID, on id: LinkID) {
        guard let link = links[id], let transaction = link.transactions.first, transaction.id == operation
        else { return }
        if !transaction.isCancelled, let next = proceed(transaction, with: answer, on: link) {
            links[id]?.transactions[0].kind = next
            links[id]?.transactions[0].isSent = false
        } else {
            links[id]?.transactions.removeFirst()
        }
        sendNext(on: id)
    }

    /// - Returns: What is left to be done, if the value takes more than one request.
    private mutating func proceed(
        _ transaction: Transaction,
        with answer: RequestResponse,
        on link: LinkRecord
    ) -> Transaction.Kind? {
        if case .refuse(let error) = answer {
            if case .subscribe(let subscription, _) = transaction.kind {
                if let mailbox = links[link.id]?.subscriptions[transaction.handle]?.removeValue(forKey: subscription) {
                    finish(mailbox)
                }
            }
            let text = "the device refused"
            fail(transaction, BluetoothError(.attributeError, text, att: error, cause: error.description))
            return nil
        }
        switch transaction.kind {
        case .read(let collected, let promise):
            var part: [UInt8] = []
            if case .value(let value) = answer { part = value }
            let whole = Array((collected + part).prefix(Limits.attributeValue))
            // A full PDU says that there may be more.
            if part.count == link.attMTU - 1, whole.count < Limits.attributeValue {
                return .read(collected: whole, promise)
            }
            complete(promise, .success(whole))
        case .write(let value, let written, let promise):
            let sent = written + partLength(value, from: written, on: link)
            if sent < value.count { return .write(value: value, written: sent, promise) }
            complete(promise, .success(()))
        case .subscribe(let subscription, let promise):
            complete(promise, .success(subscription))
        case .unsubscribe:
            break
        }
        return nil
    }

    mutating func fail(_ transaction: Transaction, _ error: BluetoothError) {
        switch transaction.kind {
        case .read(_, let promise): complete(promise, .failure(error))
        case .write(_, _, let promise): complete(promise, .failure(error))
        case .subscribe(_, let promise): complete(promise, .failure(error))
        case .unsubscribe: break
        }
    }
}
