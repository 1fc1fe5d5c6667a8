// SPDX-License-Identifier: MIT

import BluetoothLE

extension MediumState {
    // MARK: - Looking

    func link(from central: AdapterID, to peripheral: AdapterID) -> LinkRecord? {
        links.values.first { $0.central == central && $0.peripheral == peripheral }
    }

    func linkIDs(of id: AdapterID) -> [LinkID] {
        links.values.filter { $0.central == id || $0.peripheral == id }.map(\.id).sorted()
    }

    func hasCentral(_ id: AdapterID) -> Bool {
        links.values.contains { $0.peripheral == id }
    }

    func publicLinks() -> [SimulatedLink] {
        links.keys.sorted().compactMap { id in
            guard let link = links[id], let central = adapters[link.central], let peripheral = adapters[link.peripheral]
            else { return nil }
            return SimulatedLink(central: central.address, peripheral: peripheral.address, attMTU: link.attMTU)
        }
    }

    func info(of link: LinkRecord, at end: AdapterID) -> LinkInfo? {
        let isCentral = link.central == end
        guard let peer = adapters[isCentral ? link.peripheral : link.central] else { return nil }
        return LinkInfo(
            id: link.id.rawValue,
            peer: peer.peer,
            address: peer.address,
            isCentral: isCentral,
            attMTU: link.attMTU
        )
    }

    func links(of id: AdapterID) -> [LinkInfo] {
        linkIDs(of: id).compactMap { links[$0].flatMap { info(of: $0, at: id) } }
    }

    mutating func exchangeMTU(_ mtu: Int, _ one: AdapterID, _ other: AdapterID) {
        for link in [link(from: one, to: other), link(from: other, to: one)].compactMap({ $0 }) {
            links[link.id]?.attMTU = max(link.attMTU, min(mtu, Limits.attMTU.upperBound))
        }
    }

    /// The ATT MTU as the central's stack tells it.
    func toldMTU(_ id: LinkID) -> Int? {
        guard let link = links[id] else { return nil }
        return adapters[link.central]?.configuration.tellsMTU == true ? link.attMTU : nil
    }

    // MARK: - Taking down

    /// Takes a link down.
    ///
    /// - Parameters:
    ///   - central: What the central is told.
    ///   - peripheral: What the peripheral's observers are told; the contract's event has no reason.
    ///   - end: The end whose adapter or service is gone; its sessions are told `interrupted` in place of each link.
    ///   - error: What the central's operations end with.
    mutating func takeDown(
        _ id: LinkID,
        central centralReason: DisconnectReason,
        peripheral peripheralReason: DisconnectReason,
        alsoEnding end: AdapterID? = nil,
        error: BluetoothError? = nil
    ) {
        guard var link = links.removeValue(forKey: id) else { return }
        cancel(&link.supervision)
        for timer in link.farewells.values { timeline.remove(timer) }
        let down = link.down
        effects.append { down.set(centralReason) }
        let failure =
            error
            ?? BluetoothError(.disconnected, "the link went down", subject: adapters[link.peripheral]?.peer.rawValue)
        for transaction in link.transactions where !transaction.isCancelled { fail(transaction, failure) }
        endReading(link, failure)
        for (request, record) in requests where record.link == id { dropRequest(request) }
        if end != link.peripheral, let peer = adapters[link.central]?.peer {
            for handle in link.subscribed.sorted() { tellUnsubscribed(handle, link, peer) }
            for session in sessionIDs(of: link.peripheral) { tell(session, .disconnected(peer)) }
        }
        if let info = info(of: link, at: link.central) { observe(link.central, .linkDown(info, centralReason)) }
        if let info = info(of: link, at: link.peripheral) {
            observe(link.peripheral, .linkDown(info, peripheralReason))
        }
        refresh()
    }

    /// Nobody at the central's end waits for what the peripheral says.
    mutating func endReading(_ link: LinkRecord, _ error: BluetoothError) {
        for operation in link.discoveries.keys.sorted() {
            guard var discovery = link.discoveries[operation] else { continue }
            cancel(&discovery.timer)
            complete(discovery.promise, .failure(error))
        }
        for readers in link.subscriptions.values {
            for mailbox in readers.values { finish(mailbox) }
        }
        links[link.id]?.discoveries = [:]
        links[link.id]?.subscriptions = [:]
    }

    /// One end's adapter is away.
    mutating func interrupt(_ id: LinkID, at end: AdapterID, _ interruption: Interruption, _ error: BluetoothError) {
        guard let link = links[id] else { return }
        let operations = error.code == .resetting ? error : nil
        // Pulled out, an adapter says no goodbye.
        let other: DisconnectReason = interruption == .unplug ? .timeout : .remote
        if end == link.central {
            takeDown(id, central: .adapterLost, peripheral: other, error: operations)
        } else {
            takeDown(id, central: other, peripheral: .adapterLost, alsoEnding: end)
        }
    }

    mutating func drop(_ one: AdapterID, _ other: AdapterID, reason: DisconnectReason) -> Bool {
        let ids = links.values.filter {
            Pair($0.central, $0.peripheral) == Pair(one, other)
                || Pair($0.central, $0.peripheral) == Pair(other, one)
        }.map(\.id).sorted()
        for id in ids { takeDown(id, central: reason, peripheral: reason) }
        return !ids.isEmpty
    }

    mutating func disconnectPeer(_ peer: PeerIdentifier, of id: AdapterID) {
        guard let other = addresses[peer] else { return }
        if let link = link(from: id, to: other) { takeDown(link.id, central: .local, peripheral: .remote) }
        disconnectCentral(peer, of: id)
    }

    mutating func disconnectCentral(_ central: PeerIdentifier, of id: AdapterID) {
        guard let other = addresses[central], let link = link(from: other, to: id) else { return }
        takeDown(link.id, central: .remote, peripheral: .local)
    }

    mutating func setInRange(_ inRange: Bool, _ one: AdapterID, _ other: AdapterID) {
        pairs[Pair(one, other), default: PairRecord()].inRange = inRange
        pairs[Pair(other, one), default: PairRecord()].inRange = inRange
        for link in [link(from: one, to: other), link(from: other, to: one)] {
            guard var link else { continue }
            let id = link.id
            cancel(&link.supervision)
            if !inRange {
                link.supervision = schedule(after: conditions.supervisionTimeout) {
                    $0.takeDown(id, central: .timeout, peripheral: .timeout)
                }
            }
            links[id] = link
        }
        refresh()
    }

    // MARK: - Latency

    /// Does something at the peripheral when what the central sends now has arrived.
    mutating func arriveAtPeripheral(_ id: LinkID, pdus: Int = 1, _ action: @escaping Action) {
        guard let link = links[id] else { return }
        let arrival = max(now.advanced(by: conditions.latency * pdus), link.lastArrival.toPeripheral)
        links[id]?.lastArrival.toPeripheral = arrival
        after(now.duration(to: arrival), action)
    }

    mutating func arriveAtCentral(_ id: LinkID, _ action: @escaping Action) {
        guard let link = links[id] else { return }
        let arrival = max(now.advanced(by: conditions.latency), link.lastArrival.toCentral)
        links[id]?.lastArrival.toCentral = arrival
        after(now.duration(to: arrival), action)
    }
}
