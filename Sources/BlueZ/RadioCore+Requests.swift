// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

// What centrals want of a session (rules 1 to 9).
extension RadioCore {
    /// bluetoothd called a characteristic of ours.
    func called(_ id: UInt64, _ characteristic: LocalCharacteristicID, _ call: MethodCall) {
        guard let session = sessions[id], !session.isStopping else {
            return call.fail(BlueZFailure.answer(for: .unlikelyError))
        }
        // On a private bus anybody could call; a device path is worth believing from bluetoothd only.
        // While there is none, nobody may.
        guard let owner, call.sender == owner else {
            return call.fail(name: ErrorName.accessDenied, message: "only bluetoothd may call this")
        }
        switch call.member {
        case "ReadValue": requested(session, characteristic, call, RequestOptions(call.arguments.first))
        case "WriteValue": requested(session, characteristic, call, RequestOptions(call.arguments.last))
        case "AcquireNotify": acquireNotify(session, characteristic, call)
        case "StartNotify": startNotify(session, characteristic, call)
        case "StopNotify": stopNotify(session, characteristic, call)
        case "Confirm": call.reply()
        default: call.fail(name: ErrorName.unknownMethod, message: "there is no method \(call.member)")
        }
    }

    private func requested(
        _ session: Serving,
        _ characteristic: LocalCharacteristicID,
        _ call: MethodCall,
        _ options: RequestOptions?
    ) {
        guard let options else { return call.fail(BlueZFailure.answer(for: .unlikelyError)) }
        // Asks whether a prepared write may be made; the write itself comes afterwards, and is answered then.
        if options.isAuthorization { return call.reply() }
        let value = call.member == "WriteValue" ? call.arguments.first?.asBytes ?? [] : []
        guard value.count <= Limits.valueBytes else {
            return call.fail(BlueZFailure.answer(for: .invalidAttributeValueLength))
        }
        guard session.pending.count < Limits.pendingRequests else {
            return call.fail(BlueZFailure.answer(for: .insufficientResources))
        }
        centralCame(options.central, session)
        let request = RequestID(rawValue: newID())
        let central = PeerIdentifier(options.central.string)
        let isRead = call.member == "ReadValue"
        let event: PeripheralEvent =
            isRead
            ? .read(
                ReadRequest(
                    id: request, central: central, characteristic: characteristic, offset: options.offset,
                    attMTU: options.mtu))
            : .write(
                WriteRequest(
                    id: request, central: central, characteristic: characteristic,
                    value: value, offset: options.offset, attMTU: options.mtu))
        // Before the reader can know of it, so that its answer finds the request.
        let sessionID = session.id
        let timer = loop.schedule(after: Limits.requestAnswer) { [weak self] in
            self?.assumeIsolated { $0.respond(sessionID, request, .refuse(.unlikelyError)) }
        }
        session.pending[request] = Serving.PendingRequest(call: call, isRead: isRead, timer: timer)
        if !session.queue.offer(event, isRequest: true) {
            respond(sessionID, request, .refuse(.insufficientResources))
        }
    }

    func respond(_ id: UInt64, _ request: RequestID, _ response: RequestResponse) {
        guard let pending = sessions[id]?.pending.removeValue(forKey: request) else { return }
        pending.timer.cancel()
        switch response {
        case .accept: pending.call.reply(pending.isRead ? [.bytes([])] : [])
        case .value(let value):
            pending.call.reply(pending.isRead ? [.bytes(Array(value.prefix(Limits.valueBytes)))] : [])
        case .refuse(let error): pending.call.fail(BlueZFailure.answer(for: error))
        }
    }

    // MARK: Subscriptions

    /// Answered `NotSupported`, and nothing else: bluetoothd then calls StartNotify and listens to PropertiesChanged
    /// (rule 2). What we are after are its options.
    private func acquireNotify(_ session: Serving, _ characteristic: LocalCharacteristicID, _ call: MethodCall) {
        let options = RequestOptions(call.arguments.first)
        call.fail(name: BlueZError.notSupported, message: "notifications go by PropertiesChanged")
        guard let options else { return }
        centralCame(options.central, session)
        session.subscriptions[characteristic, default: .init()].isNotifying = true
        if session.centrals.contains(options.central) {
            session.subscriptions[characteristic]?.known.insert(options.central)
        }
        session.tell(
            .subscribed(characteristic, central: PeerIdentifier(options.central.string), attMTU: options.mtu))
    }

    /// After AcquireNotify this says nothing new.
    private func startNotify(_ session: Serving, _ characteristic: LocalCharacteristicID, _ call: MethodCall) {
        call.reply()
        guard session.subscriptions[characteristic]?.isNotifying != true else { return }
        session.subscriptions[characteristic, default: .init()].isNotifying = true
        session.tell(.subscribed(characteristic, central: nil, attMTU: nil))
    }

    /// Comes when the last subscriber goes (rule 2).
    private func stopNotify(_ session: Serving, _ characteristic: LocalCharacteristicID, _ call: MethodCall) {
        call.reply()
        guard let before = session.subscriptions.removeValue(forKey: characteristic), before.isNotifying else { return }
        session.tell(.unsubscribed(characteristic, central: nil))
    }

    func notify(
        _ id: UInt64,
        _ value: [UInt8],
        _ characteristic: LocalCharacteristicID,
        _ central: PeerIdentifier?
    ) async throws(BluetoothError) {
        guard let adapter = usableAdapter, view.adapters[adapter]?.overflowsWithNotifications == true else {
            return try notifyNow(id, value, characteristic, central)
        }
        try await notificationsTurn()
        do throws(BluetoothError) {
            try notifyNow(id, value, characteristic, central)
        } catch {
            nextNotification()
            throw error
        }
        // Once this is answered bluetoothd has the value: it gathers for 10 ms from then on, however late it is.
        send(Adapter1.roundTrip(adapter)) { core, _ in
            core.loop.schedule(after: Limits.notifyAgain) { [weak core] in
                core?.assumeIsolated { $0.nextNotification() }
            }
        }
    }

    private func notifyNow(
        _ id: UInt64,
        _ value: [UInt8],
        _ characteristic: LocalCharacteristicID,
        _ central: PeerIdentifier?
    ) throws(BluetoothError) {
        guard value.count <= Limits.valueBytes else {
            throw BluetoothError(
                .invalidArgument, "a notification has at most \(Limits.valueBytes) bytes, not \(value.count)")
        }
        guard let session = sessions[id], !session.isStopping else {
            throw BluetoothError(.notConnected, "the session is over")
        }
        guard let path = session.characteristics[characteristic],
            session.services[characteristic.service].characteristics[characteristic.characteristic].notifies
        else { throw BluetoothError(.invalidArgument, "there is no such characteristic, or it does not notify") }
        guard !session.isInterrupted, session.isApplicationRegistered, let connection else {
            throw BluetoothError(.resetting, "the adapter or the Bluetooth service is away")
        }
        // A bonded central's subscription outlives its connection and calls nothing on its return (rule 2): while
        // somebody is connected, nobody having called does not mean that nobody has subscribed.
        let isHeard = session.subscriptions[characteristic]?.isNotifying == true || !session.centrals.isEmpty
        // Meant for one who left, it would only reach those whom it does not concern (rule 1).
        let isGone = central.map { central in !session.centrals.contains { $0.string == central.rawValue } } ?? false
        guard isHeard, !isGone else {
            throw BluetoothError(.notConnected, isGone ? "the central has left" : "nobody has subscribed")
        }
        // One change is one notification, in order; `Value` is never listed as invalidated (rule 9).
        let result = connection.assumeIsolated { connection -> Result<Void, DBusError> in
            do throws(DBusError) {
                try connection.emitPropertiesChanged(
                    path, BlueZName.gattCharacteristic, changed: [("Value", .bytes(value))])
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        if case .failure(let error) = result { throw BlueZFailure.error(error, during: .serve) }
    }

    /// One after another, in order.
    private func notificationsTurn() async throws(BluetoothError) {
        guard isNotifying else {
            isNotifying = true
            return
        }
        let waiter = newWaiter()
        waitingNotifications.append(waiter)
        guard let error = await wait(waiter, timeout: nil) else { return }
        if let place = waitingNotifications.firstIndex(of: waiter) {
            waitingNotifications.remove(at: place)
        } else {
            // It was this one's turn already.
            nextNotification()
        }
        throw error
    }

    private func nextNotification() {
        guard !waitingNotifications.isEmpty else {
            isNotifying = false
            return
        }
        wake(waitingNotifications.removeFirst())
    }

    // MARK: Centrals

    /// A device connected that we did not connect to.
    func centralCame(_ path: ObjectPath) {
        guard let adapter = usableAdapter, path.isBeneath(adapter) else { return }
        for session in sessions.values where session.isApplicationRegistered { centralCame(path, session) }
    }

    /// Told before its first request at the latest.
    private func centralCame(_ path: ObjectPath, _ session: Serving) {
        guard !session.centrals.contains(path), session.centrals.count < Limits.centrals else { return }
        session.centrals.insert(path)
        session.tell(.connected(PeerIdentifier(path.string)))
        scheduleRefresh(session)
    }

    func centralGone(_ path: ObjectPath) {
        for session in sessions.values where session.centrals.remove(path) != nil {
            for characteristic in session.subscriptions.keys {
                session.subscriptions[characteristic]?.known.remove(path)
            }
            session.tell(.disconnected(PeerIdentifier(path.string)))
            scheduleRefresh(session)
        }
    }

    func disconnectCentral(_ id: UInt64, _ central: PeerIdentifier) async {
        guard let session = sessions[id], let path = ObjectPath(validating: central.rawValue),
            session.centrals.contains(path)
        else { return }
        _ = await request(Device1.disconnect(path))
    }

    /// Nobody holds the session any more.
    func abandonSession(_ id: UInt64) {
        guard sessions[id] != nil else { return }
        Task(executorPreference: loop) { await self.stopSession(id) }
    }
}
