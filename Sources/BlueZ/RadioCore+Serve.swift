// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

// Serving and advertising (rules 10 to 14): what is registered follows what should be, one step after the other.
extension RadioCore {
    /// - Returns: The session's id and events.
    func serve(
        _ services: [LocalService],
        _ request: AdvertisementRequest?
    ) async throws(BluetoothError) -> (UInt64, AsyncStream<PeripheralEvent>) {
        try LocalGATT.check(services)
        if let error = request.flatMap({ AdvertisementBudget($0).error }) { throw error }
        beginOperation()
        defer { endOperation() }
        try await ready()
        let adapter = try requireAdapter()
        guard adapter.servesGATT, adapter.advertises || request == nil else {
            throw BluetoothError(
                .notSupported, "this adapter cannot be a Bluetooth LE peripheral", advice: "Use another adapter.",
                subject: adapter.name)
        }
        guard sessions.count < Limits.sessions, let root = ObjectPath(validating: "/ble/session\(newID())") else {
            throw BluetoothError(.limitExceeded, "this radio has \(Limits.sessions) sessions already")
        }
        let session = Serving(id: newID(), services: services, request: request, root: root)
        sessions[session.id] = session
        let outcome = newWaiter()
        session.firstOutcome = outcome
        reconcile(session.id)
        if let error = await wait(outcome, timeout: nil) {
            await stopSession(session.id)
            throw error
        }
        return (session.id, session.queue.stream())
    }

    /// Comes to its end even in a cancelled task. What a killed process leaves behind, bluetoothd cleans up itself.
    func stopSession(_ id: UInt64) async {
        guard let session = sessions[id], !session.isStopping else { return }
        session.isStopping = true
        session.refreshTimer?.cancel()
        session.retryTimer?.cancel()
        if session.isReconciling {
            let waiter = newWaiter()
            session.idleWaiters.append(waiter)
            _ = await wait(waiter, timeout: Limits.stop, cancellable: false)
        }
        // Both at once: nobody finds us any more while the services go.
        var calls: [DBusCall] = []
        if let adapter = usableAdapter, session.advertising.isRegistered, let advertisement = session.advertisement {
            calls.append(AdvertisingRegistry.unregister(adapter, advertisement))
        }
        if let call = unregistration(session) { calls.append(call) }
        await requestAll(calls)
        unexport(session)
        for pending in session.pending.values {
            pending.timer.cancel()
            pending.call.fail(BlueZFailure.answer(for: .unlikelyError))
        }
        session.pending = [:]
        session.queue.finish()
        sessions[id] = nil
        wake(&session.idleWaiters)
        releaseIfUnused()
    }

    /// The adapter, bluetoothd or the bus is lost: everything registered is gone.
    func interrupt(_ session: Serving, _ error: BluetoothError) {
        session.epoch += 1
        session.isApplicationRegistered = false
        session.advertising.reset()
        if let advertisement = session.advertisement { withConnection { $0.unexport(advertisement) } }
        session.advertisement = nil
        session.refreshTimer?.cancel()
        session.refreshTimer = nil
        session.retryTimer?.cancel()
        session.retryTimer = nil
        session.retryPause.reset()
        for pending in session.pending.values {
            pending.timer.cancel()
            pending.call.fail(BlueZFailure.answer(for: .unlikelyError))
        }
        session.pending = [:]
        session.centrals = []
        session.subscriptions = [:]
        session.told = nil
        if let outcome = session.firstOutcome {
            session.firstOutcome = nil
            wake(outcome, with: error)
        } else if !session.isInterrupted, !session.isStopping {
            session.isInterrupted = true
            session.tell(.interrupted(error))
        }
    }

    /// Brings what is registered to what should be. May be called at any time, any number of times.
    func reconcile(_ id: UInt64) {
        guard let session = sessions[id], !session.isStopping else { return }
        guard !session.isReconciling else {
            session.isAgain = true
            return
        }
        session.isReconciling = true
        Task(executorPreference: loop) {
            await self.reconcileUntilDone(id)
        }
    }

    private func reconcileUntilDone(_ id: UInt64) async {
        guard let session = sessions[id] else { return }
        repeat {
            session.isAgain = false
            await reconcileOnce(session)
        } while session.isAgain && !session.isStopping
        // `stopSession` does not wait for a late answer; nothing of an ended session stays registered all the same.
        if sessions[id] == nil { await unregister(session) }
        session.isReconciling = false
        wake(&session.idleWaiters)
    }

    private func unregister(_ session: Serving) async {
        if let call = unregistration(session) { _ = await request(call) }
    }

    /// bluetoothd keeps the application of an adapter that is off, and drops that of one which is gone (src/gatt-database.c).
    private func unregistration(_ session: Serving) -> DBusCall? {
        session.isApplicationRegistered = false
        guard let adapter = session.applicationAdapter else { return nil }
        session.applicationAdapter = nil
        return view.adapters[adapter] == nil ? nil : GATTRegistry.unregister(adapter, session.root)
    }

    private func reconcileOnce(_ session: Serving) async {
        guard !session.isStopping, let adapter = usableAdapter else { return }
        session.retryTimer?.cancel()
        session.retryTimer = nil
        let epoch = session.epoch
        if let error = export(session) { return conclude(session, nil, error) }
        if !session.isApplicationRegistered {
            if session.applicationAdapter != adapter { await unregister(session) }
            guard session.epoch == epoch else {
                session.isAgain = true
                return
            }
            let result = await request(GATTRegistry.register(adapter, session.root))
            guard session.epoch == epoch else {
                if case .success = result { session.applicationAdapter = adapter }
                session.isAgain = true
                return
            }
            if case .failure(let error) = result, error.name != BlueZError.alreadyExists {
                // A registration whose answer is late may come about yet.
                if error.code == .timedOut { _ = await request(GATTRegistry.unregister(adapter, session.root)) }
                let failure = BlueZFailure.error(error, during: .serve, subject: adapter.lastElement)
                return conclude(session, nil, failure)
            }
            session.isApplicationRegistered = true
            session.applicationAdapter = adapter
        }
        guard session.request != nil else { return conclude(session, false, nil) }
        guard advertisingHolds == 0 else {
            await unregisterAdvertisement(session, adapter)
            wake(&session.idleWaiters)
            return
        }
        let error = await advertise(session, adapter)
        guard session.epoch == epoch else {
            session.isAgain = true
            return
        }
        guard !session.isStopping else { return }
        conclude(session, session.advertising.isRegistered, error)
    }

    /// - Parameter advertising: `nil`: nothing is served at all.
    private func conclude(_ session: Serving, _ advertising: Bool?, _ error: BluetoothError?) {
        let failed = advertising == nil || (session.request != nil && advertising == false)
        if let outcome = session.firstOutcome {
            session.firstOutcome = nil
            if failed {
                wake(outcome, with: error ?? BluetoothError(.advertisingFailed, "the advertisement was refused"))
                return
            }
            wake(outcome)
        }
        if failed {
            let id = session.id
            session.retryTimer = loop.schedule(after: session.retryPause.next()) { [weak self] in
                self?.assumeIsolated { $0.reconcile(id) }
            }
        } else {
            session.retryPause.reset()
        }
        guard let advertising else {
            if !session.isInterrupted, let error {
                session.isInterrupted = true
                session.tell(.interrupted(error))
            }
            return
        }
        session.isInterrupted = false
        let event = PeripheralEvent.serving(advertising: advertising, degraded: error ?? degradation(session))
        guard event != session.told else { return }
        session.told = event
        session.tell(event)
    }

    private func degradation(_ session: Serving) -> BluetoothError? {
        guard session.advertising.isRegistered, session.advertising.isDegraded else { return nil }
        let form = session.advertising.form
        let withoutName = !form.name && session.request?.localName != nil
        return BluetoothError(
            .advertisingFailed,
            withoutName
                ? "the adapter advertises without the name and the interval asked for"
                : "the adapter advertises at its own interval, not the one asked for",
            advice: "Centrals find this host, but it can take longer: BlueZ's own interval is 1.28 s.")
    }

    // MARK: Exporting

    private func export(_ session: Serving) -> BluetoothError? {
        guard !session.isExported else { return nil }
        do throws(DBusError) {
            try exportObjects(session)
        } catch {
            unexport(session)
            return BlueZFailure.error(error, during: .serve)
        }
        session.isExported = true
        return nil
    }

    private func exportObjects(_ session: Serving) throws(DBusError) {
        guard let connection else { throw DBusError(.disconnected, "there is no connection to the bus") }
        var objects: [(ObjectPath, any ExportedObject)] = []
        let id = session.id
        for (position, service) in session.services.enumerated() {
            guard let path = session.root.appending("service\(position)") else { continue }
            objects.append((path, LocalService1(service)))
            for (index, characteristic) in service.characteristics.enumerated() {
                guard let member = path.appending("char\(index)") else { continue }
                let name = LocalCharacteristicID(service: position, characteristic: index)
                session.characteristics[name] = member
                let object = LocalCharacteristic1(characteristic, of: path) { [weak self] call in
                    self?.assumeIsolated { $0.called(id, name, call) }
                }
                objects.append((member, object))
            }
        }
        let (root, exported) = (session.root, objects)
        let result = connection.assumeIsolated { connection -> Result<Void, DBusError> in
            do throws(DBusError) {
                // Objects first, so that the object manager announces none of them.
                for (path, object) in exported { try connection.export(object, at: path) }
                try connection.exportObjectManager(at: root)
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    private func unexport(_ session: Serving) {
        let paths =
            session.characteristics.values.sorted().reversed()
            + session.services.indices.compactMap {
                session.root.appending("service\($0)")
            }
        let (root, advertisement) = (session.root, session.advertisement)
        withConnection { connection in
            connection.unexportObjectManager(at: root)
            for path in paths { connection.unexport(path) }
            if let advertisement { connection.unexport(advertisement) }
        }
        session.advertisement = nil
        session.isExported = false
    }

    func withConnection(_ body: @Sendable (isolated DBusConnection) -> Void) {
        connection?.assumeIsolated { body($0) }
    }
}
