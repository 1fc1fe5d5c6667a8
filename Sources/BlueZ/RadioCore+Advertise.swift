// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

// The advertisement of a session (rules 11 to 14, 24).
extension RadioCore {
    /// Registers if it is not, or has to be again; climbs down the ladder.
    ///
    /// - Returns: Why nothing is advertised.
    func advertise(_ session: Serving, _ adapter: ObjectPath) async -> BluetoothError? {
        guard !session.advertising.isRegistered || session.isRefreshWanted else { return nil }
        session.isRefreshWanted = false
        let epoch = session.epoch
        var step = session.advertising.again(
            besideLinks: view.hasConnection(to: adapter),
            survivesRefusal: view.adapters[adapter]?.survivesRefusedRefresh ?? false)
        var failure: BluetoothError?
        while session.epoch == epoch, !session.isStopping {
            switch step {
            case .giveUp:
                return failure
            case .refresh:
                refresh(session)
                return nil
            case .unregisterThenRegister(let form):
                await unregister(session, adapter)
                step = .register(form)
            case .register(let form):
                guard let path = export(session, form) else {
                    return BluetoothError(.internalFailure, "the advertisement could not be offered to the bus")
                }
                let wasBesideLinks = view.hasConnection(to: adapter)
                let result = await request(AdvertisingRegistry.register(adapter, path))
                guard session.epoch == epoch else {
                    withConnection { $0.unexport(path) }
                    // Its answer has come too late; where it was yes, it takes up room. Not asked of a bluetoothd that has
                    // gone: that would start it.
                    if case .success = result, view.adapters[adapter] != nil {
                        send(AdvertisingRegistry.unregister(adapter, path)) { _, _ in }
                    }
                    return nil
                }
                switch result {
                case .success:
                    session.advertising.succeeded(besideLinks: wasBesideLinks && view.hasConnection(to: adapter))
                    // `stopSession` has not waited for this late answer: an ended session is not on the air.
                    if sessions[session.id] == nil { _ = await request(AdvertisingRegistry.unregister(adapter, path)) }
                    return nil
                case .failure(let error):
                    failure = BlueZFailure.error(error, during: .advertise, subject: adapter.lastElement)
                    // A registration whose answer is late may come about yet.
                    if error.code == .timedOut { await unregister(session, adapter) }
                    withdraw(session)
                    step = session.advertising.failed(AdvertisingMachine.refusal(error))
                }
            }
        }
        return nil
    }

    func unregisterAdvertisement(_ session: Serving, _ adapter: ObjectPath) async {
        guard session.advertising.isRegistered else { return }
        session.advertising.released()
        await unregister(session, adapter)
    }

    /// Awaits it: registering again while the old one is being removed finds no room (rule 14).
    private func unregister(_ session: Serving, _ adapter: ObjectPath) async {
        guard let path = session.advertisement else { return }
        _ = await request(AdvertisingRegistry.unregister(adapter, path))
        withdraw(session)
    }

    /// Of an adapter that is switched off or used no more. bluetoothd keeps an advertisement whose adapter is off, and each that
    /// is left with it is room that the next one has not: there are about five (src/advertising.c; seen on 5.55 to 5.87).
    func takeBackAdvertisements(from adapter: ObjectPath) {
        for session in sessions.values where session.advertising.isRegistered {
            guard let path = session.advertisement else { continue }
            send(AdvertisingRegistry.unregister(adapter, path)) { _, _ in }
        }
    }

    /// A property that is said to have changed makes bluetoothd give the whole advertisement to the kernel again, in each
    /// version (src/advertising.c, properties_changed); that starts the advertising anew. `Duration` always does. (Not so
    /// `Discoverable`: told what it knows already, bluetoothd forgets it and refreshes nothing.)
    private func refresh(_ session: Serving) {
        guard let path = session.advertisement else { return }
        withConnection { connection in
            // Nothing but a lost connection can refuse it, and after that everything is registered anew.
            try? connection.emitPropertiesChanged(
                path, BlueZName.advertisement, changed: [("Duration", .uint16(0))])
        }
    }

    private func withdraw(_ session: Serving) {
        guard let path = session.advertisement else { return }
        session.advertisement = nil
        withConnection { $0.unexport(path) }
    }

    /// A path of its own for each registration: bluetoothd may not be done with the one before.
    private func export(_ session: Serving, _ form: AdvertisingForm) -> ObjectPath? {
        guard let connection, let request = session.request else { return nil }
        session.advertisementSerial += 1
        guard
            let path = ObjectPath(validating: "\(session.root.string)_advertisement\(session.advertisementSerial)")
        else { return nil }
        let id = session.id
        let object = LEAdvertisement1(request, form: form) { [weak self] sender in
            self?.assumeIsolated { core in
                // On a private bus anybody could call.
                if sender == core.owner { core.released(id, path) }
            }
        }
        let isExported = connection.assumeIsolated { connection -> Bool in
            do throws(DBusError) {
                try connection.export(object, at: path)
                return true
            } catch {
                return false
            }
        }
        guard isExported else { return nil }
        session.advertisement = path
        return path
    }

    /// bluetoothd took the advertisement back (rule 14).
    private func released(_ id: UInt64, _ path: ObjectPath) {
        guard let session = sessions[id], session.advertisement == path, session.advertising.isRegistered
        else { return }
        session.advertising.released()
        withdraw(session)
        // Also when the adapter is switched off; then the adapter's return registers it.
        scheduleRefresh(session)
    }

    /// Many controllers stop advertising when a central connects, and do not always resume when it leaves: the next
    /// central would find nothing (rule 14). Several changes at once count as one.
    func scheduleRefresh(_ session: Serving) {
        guard session.request != nil, session.refreshTimer == nil, !session.isStopping else { return }
        let id = session.id
        session.refreshTimer = loop.schedule(after: Limits.advertiseAgain) { [weak self] in
            self?.assumeIsolated { core in
                guard let session = core.sessions[id] else { return }
                session.refreshTimer = nil
                session.isRefreshWanted = true
                core.reconcile(id)
            }
        }
    }

    // MARK: Making room for a connection attempt (rule 24)

    /// Some controllers cannot be a central while they advertise (bluez/bluez#584).
    func holdAdvertising() async {
        advertisingHolds += 1
        for session in sessions.values where session.request != nil {
            // One that is being ended is off the air once it has ended.
            while sessions[session.id] != nil {
                let waiter = newWaiter()
                session.idleWaiters.append(waiter)
                reconcile(session.id)
                let error = await wait(waiter, timeout: Limits.stop, cancellable: false)
                if error != nil || !session.isStopping { break }
            }
        }
    }

    func releaseAdvertising() {
        advertisingHolds -= 1
        guard advertisingHolds == 0 else { return }
        for id in sessions.keys { reconcile(id) }
    }
}
