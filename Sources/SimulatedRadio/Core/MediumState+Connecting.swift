// SPDX-License-Identifier: MIT

import BluetoothLE

extension MediumState {
    mutating func connect(
        _ id: AdapterID,
        _ peer: PeerIdentifier,
        timeout: Duration,
        _ promise: Promise<EstablishedLink>
    ) throws(BluetoothError) -> OperationID {
        guard let adapter = adapters[id] else { throw .adapterGone }
        if let error = adapter.unavailability { throw error }
        guard let target = adapter.known[peer]?.adapter else {
            throw BluetoothError(
                .peerNotFound, "the device is not known", advice: "Scan again.", subject: peer.rawValue)
        }
        if link(from: id, to: target) != nil
            || connects.values.contains(where: { $0.central == id && $0.peripheral == target })
        {
            throw BluetoothError(.busy, "the device is connected, or being connected to", subject: peer.rawValue)
        }
        guard links.values.count(where: { $0.central == id }) < adapter.configuration.maximumPeripherals else {
            throw BluetoothError(.connectionFailed, "the adapter has no room for another link", subject: adapter.name)
        }
        let operation = OperationID(rawValue: nextNumber())
        let timer = schedule(after: max(timeout, .zero)) { state in
            state.failConnect(
                operation, BluetoothError(.timedOut, "the device did not answer", subject: peer.rawValue))
        }
        connects[operation] = ConnectRecord(central: id, peripheral: target, promise: promise, timer: timer)
        let fault = adapters[target]?.takeFault { fault -> BluetoothError?? in
            switch fault {
            case .nextConnect(let error): .some(error)
            case .nextConnectHangs: .some(nil)
            default: nil
            }
        }
        switch fault {
        case .some(.some(let error)): failConnect(operation, error)
        case .some(nil): connects[operation]?.isUnderWay = true
        case nil: reconsiderConnects()
        }
        return operation
    }

    mutating func cancelConnect(_ operation: OperationID) {
        failConnect(operation, .cancelled)
    }

    mutating func failConnect(_ operation: OperationID, _ error: BluetoothError) {
        guard var record = connects.removeValue(forKey: operation) else { return }
        cancel(&record.timer)
        complete(record.promise, .failure(error))
    }

    mutating func failConnects(of central: AdapterID, _ error: BluetoothError) {
        for operation in connects.keys.sorted() where connects[operation]?.central == central {
            failConnect(operation, error)
        }
    }

    /// Sets up the links that wait for their peer to be there.
    mutating func reconsiderConnects() {
        guard !connects.isEmpty else { return }
        for operation in connects.keys.sorted() {
            guard let record = connects[operation], !record.isUnderWay, isConnectable(record) else { continue }
            connects[operation]?.isUnderWay = true
            after(conditions.connectionTime) { $0.establish(operation) }
        }
    }

    private func isConnectable(_ record: ConnectRecord) -> Bool {
        guard let target = adapters[record.peripheral], target.isReady, target.configuration.acceptsConnections,
            isAdvertising(target.id), isInRange(record.central, target.id)
        else { return false }
        return links.values.count(where: { $0.peripheral == target.id }) < target.configuration.maximumCentrals
    }

    private mutating func establish(_ operation: OperationID) {
        guard var record = connects[operation] else { return }
        guard isConnectable(record) else {
            connects[operation]?.isUnderWay = false
            return
        }
        connects[operation] = nil
        cancel(&record.timer)
        let id = LinkID(rawValue: nextNumber())
        let link = LinkRecord(
            id: id,
            central: record.central,
            peripheral: record.peripheral,
            attMTU: negotiatedMTU(record.central, record.peripheral),
            down: Latch(),
            lastArrival: (now, now)
        )
        links[id] = link
        complete(record.promise, .success(EstablishedLink(id: id, down: link.down)))
        if let central = adapters[record.central] {
            for session in sessionIDs(of: record.peripheral) { tell(session, .connected(central.peer)) }
        }
        for end in [record.central, record.peripheral] {
            if let info = info(of: link, at: end) { observe(end, .linkUp(info)) }
        }
        if adapters[record.peripheral]?.isAbandoned == true { orphan(id, at: record.peripheral) }
        refresh()
    }

    private func negotiatedMTU(_ central: AdapterID, _ peripheral: AdapterID) -> Int {
        let offers = [adapters[central]?.configuration.maximumMTU, adapters[peripheral]?.configuration.maximumMTU]
        let least = ([pairs[Pair(central, peripheral)]?.mtu] + offers).compactMap { $0 }.min() ?? 23
        return min(max(least, Limits.attMTU.lowerBound), Limits.attMTU.upperBound)
    }

    func isInRange(_ one: AdapterID, _ other: AdapterID) -> Bool {
        pairs[Pair(one, other)]?.inRange ?? true
    }
}
