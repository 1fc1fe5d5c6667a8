// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

// The peer's GATT services (rules 21, 22).
extension RadioCore {
    func attMTU(_ id: UInt64) async -> Int? {
        guard let link = links[id], link.phase == .up else { return nil }
        let told = view.attMTU(of: link.path)
        if let told, told > GattCharacteristic1.defaultMTU { return told }
        // A device whose services bluetoothd remembers has its objects before the MTU is agreed on, and no signal tells
        // of the change (5.66, docs/bluez.md). The smallest is worth a question.
        guard link.path.parent.flatMap({ view.adapters[$0] })?.tellsMTU ?? true,
            let path = view.anyCharacteristic(of: link.path),
            case .success(let body) = await request(GattCharacteristic1.mtu(path)),
            let mtu = body.first?.asUInt16
        else { return told }
        return Int(mtu)
    }

    func discoverServices(_ id: UInt64, awaiting awaited: BluetoothUUID?) async throws(BluetoothError)
        -> [RemoteService]
    {
        let link = try liveLink(id)
        if view.devices[link.path]?.servicesResolved != true {
            let waiter = newWaiter()
            link.resolvedWaiters.append(waiter)
            if let error = await wait(waiter, timeout: Limits.servicesResolved) {
                guard error.code == .timedOut else { throw error }
                throw BluetoothError(
                    .timedOut, "the device's services were not resolved within \(Limits.servicesResolved)",
                    advice: "Disconnect, and try again.", subject: subject(link.path))
            }
            // It may have gone down between the signal and this.
            _ = try liveLink(id)
        }
        guard let awaited else { return view.remoteServices(of: link.path) }
        // `ServicesResolved` can come before the objects (bluez/bluez#1489).
        let deadline = ContinuousClock.now + Limits.lateAttribute
        while true {
            let services = view.remoteServices(of: link.path)
            let left = deadline - .now
            if services.contains(where: { $0.characteristics.contains { $0.uuid == awaited } }) || left <= .zero {
                return services
            }
            let waiter = newWaiter()
            link.attributeWaiters.append(waiter)
            if let error = await wait(waiter, timeout: left), error.code != .timedOut { throw error }
            _ = try liveLink(id)
        }
    }

    func servicesResolvedChanged(_ path: ObjectPath) {
        guard let link = activeLinks[path].flatMap({ links[$0] }), view.devices[path]?.servicesResolved == true
        else { return }
        wake(&link.resolvedWaiters)
    }

    func characteristicAdded(_ device: ObjectPath) {
        guard let link = activeLinks[device].flatMap({ links[$0] }) else { return }
        wake(&link.attributeWaiters)
    }

    func characteristicRemoved(_ device: ObjectPath, _ path: ObjectPath) {
        guard let link = activeLinks[device].flatMap({ links[$0] }) else { return }
        // Its subscription is gone with it; the peer has changed its services.
        guard let use = link.characteristics[path] else { return }
        use.finish()
        let before = use.notify
        use.notify = .off
        // The answer to `StartNotify` finds nobody any more.
        if case .starting(var waiting) = before {
            let error = BluetoothError(
                .attributeNotFound, "the characteristic is gone", advice: "Discover the services again.",
                subject: subject(device))
            wake(&waiting, with: error)
        }
    }

    func valueChanged(_ device: ObjectPath, _ path: ObjectPath, _ value: [UInt8]) {
        guard let link = activeLinks[device].flatMap({ links[$0] }) else { return }
        link.characteristics[path]?.changed(value)
    }

    // MARK: Reading and writing

    func read(_ id: UInt64, _ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        let path = try await begin(id, characteristic)
        links[id]?.characteristics[path]?.isReading = true
        let body = try await perform(id, path, GattCharacteristic1.read(path))
        return body.first?.asBytes ?? []
    }

    func write(
        _ id: UInt64,
        _ value: [UInt8],
        _ characteristic: RemoteCharacteristic,
        _ type: WriteType
    ) async throws(BluetoothError) {
        guard value.count <= Limits.valueBytes else {
            throw BluetoothError(.invalidArgument, "a value has at most \(Limits.valueBytes) bytes, not \(value.count)")
        }
        let path = try await begin(id, characteristic)
        _ = try await perform(id, path, GattCharacteristic1.write(path, value, type))
    }

    /// Waits for its turn on the characteristic.
    private func begin(_ id: UInt64, _ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> ObjectPath
    {
        let (link, path, use) = try use(id, characteristic)
        guard use.isBusy else {
            use.isBusy = true
            return path
        }
        guard use.queue.count < Limits.queuedWrites else {
            throw BluetoothError(.limitExceeded, "\(Limits.queuedWrites) operations wait for this characteristic")
        }
        let waiter = newWaiter()
        use.queue.append(waiter)
        if let error = await wait(waiter, timeout: nil) {
            use.queue.removeAll { $0 == waiter }
            throw error
        }
        // The turn is ours now, and has to be given on if it is of no use.
        if let error = link.error {
            finish(use)
            throw error
        }
        return path
    }

    private func finish(_ use: CharacteristicUse) {
        while !use.queue.isEmpty {
            if wake(use.queue.removeFirst()) { return }
        }
        use.isBusy = false
    }

    /// Reads or writes. The turn is given on when bluetoothd has answered, even if nobody waits for it any more.
    private func perform(_ id: UInt64, _ path: ObjectPath, _ call: DBusCall) async throws(BluetoothError) -> [DBusValue]
    {
        guard let link = links[id] else { throw BluetoothError(.notConnected, "the link is gone") }
        let waiter = newWaiter()
        link.operationWaiters.insert(waiter)
        send(call) { core, result in
            if let use = core.links[id]?.characteristics[path] {
                if use.isReading { use.readAnswered(try? result.get().first?.asBytes) }
                core.finish(use)
            }
            if core.isWaiting(waiter) { core.results[waiter] = result }
            core.wake(waiter)
        }
        let error = await wait(waiter, timeout: nil)
        link.operationWaiters.remove(waiter)
        if let error { throw error }
        guard let result = results.removeValue(forKey: waiter) else {
            throw BluetoothError(.internalFailure, "the answer was lost")
        }
        switch result {
        case .success(let body): return body
        case .failure(let failure):
            let error = BlueZFailure.error(failure, during: .attribute, subject: subject(link.path))
            throw await orItsLoss(link, error)
        }
    }

    /// A link that is lost answers what is under way with 0x0E, as a peer says "unlikely error", and bluetoothd may tell of
    /// the loss a little later: the end of its socket and the kernel's event are two things (src/shared/att.c,
    /// `disconnect_cb`; src/shared/gatt-client.c, `process_error`).
    private func orItsLoss(_ link: Link, _ error: BluetoothError) async -> BluetoothError {
        guard error.att == .unlikelyError, link.phase == .up else { return link.error ?? error }
        let waiter = newWaiter()
        link.operationWaiters.insert(waiter)
        let ended = await wait(waiter, timeout: Limits.lossTold)
        link.operationWaiters.remove(waiter)
        if let ended, ended.code == .cancelled { return ended }
        return link.error ?? error
    }

    // MARK: Subscribing

    func subscribe(_ id: UInt64, _ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> Subscription {
        let (link, path, use) = try use(id, characteristic)
        guard !characteristic.properties.isDisjoint(with: [.notify, .indicate]) else {
            throw BluetoothError(.notSupported, "the characteristic \(characteristic.uuid) does not notify")
        }
        guard use.subscribers.count < Limits.subscribers else {
            throw BluetoothError(.limitExceeded, "this characteristic has \(Limits.subscribers) subscribers already")
        }
        let subscriber = newID()
        let (stream, values) = AsyncStream.makeStream(
            of: [UInt8].self, bufferingPolicy: .bufferingNewest(Limits.subscriptionValues))
        // Before the call: a notification may overtake its answer (bleak#1885).
        use.subscribers[subscriber] = values
        values.onTermination = { [weak self] _ in
            guard let self else { return }
            Task(executorPreference: loop) { await self.unsubscribe(id, path, subscriber) }
        }
        if let error = await startNotify(id, path, use) {
            await unsubscribe(id, path, subscriber)
            throw await orItsLoss(link, error)
        }
        return Subscription(values: stream) { await self.unsubscribe(id, path, subscriber) }
    }

    /// One `StartNotify` for all of this process: N of them would make each notification arrive N times (rule 22).
    private func startNotify(_ id: UInt64, _ path: ObjectPath, _ use: CharacteristicUse) async -> BluetoothError? {
        let waiter = newWaiter()
        switch use.notify {
        case .on:
            forgetWaiter(waiter)
            return nil
        case .starting(let waiting):
            use.notify = .starting(waiting + [waiter])
        case .off:
            use.notify = .starting([waiter])
            send(GattCharacteristic1.startNotify(path)) { [device = links[id]?.path] core, result in
                core.startNotifyAnswered(id, device, path, result)
            }
        }
        return await wait(waiter, timeout: nil)
    }

    private func startNotifyAnswered(
        _ id: UInt64, _ device: ObjectPath?, _ path: ObjectPath, _ result: Result<[DBusValue], DBusError>
    ) {
        guard let link = links[id], let use = link.characteristics[path], case .starting(var waiting) = use.notify
        else {
            // The link was let go of meanwhile, and stays up: nobody else ends what has begun on it.
            if case .success = result, let device, activeLinks[device] == nil, view.devices[device]?.connected == true {
                send(GattCharacteristic1.stopNotify(path)) { _, _ in }
            }
            return
        }
        // `InProgress`: this connection to the bus is subscribed already, which is what was asked for.
        if case .failure(let error) = result, error.name != BlueZError.inProgress {
            use.notify = .off
            let failure = BlueZFailure.error(error, during: .attribute, subject: subject(link.path))
            return wake(&waiting, with: failure)
        }
        use.notify = .on
        wake(&waiting)
        if use.subscribers.isEmpty { stopNotify(path, use) }
    }

    func stopNotify(_ path: ObjectPath, _ use: CharacteristicUse) {
        use.notify = .off
        send(GattCharacteristic1.stopNotify(path)) { _, _ in }
    }

    func unsubscribe(_ id: UInt64, _ path: ObjectPath, _ subscriber: UInt64) async {
        guard let link = links[id], let use = link.characteristics[path],
            let values = use.subscribers.removeValue(forKey: subscriber)
        else { return }
        values.finish()
        guard use.subscribers.isEmpty, case .on = use.notify, link.phase == .up else { return }
        use.notify = .off
        _ = await request(GattCharacteristic1.stopNotify(path))
    }

    // MARK: Checks

    private func liveLink(_ id: UInt64) throws(BluetoothError) -> Link {
        guard let link = links[id], link.phase == .up else {
            throw links[id]?.error ?? BluetoothError(.notConnected, "the link is down", subject: subject(link: id))
        }
        return link
    }

    private func use(
        _ id: UInt64,
        _ characteristic: RemoteCharacteristic
    ) throws(BluetoothError) -> (Link, ObjectPath, CharacteristicUse) {
        let link = try liveLink(id)
        guard let path = ObjectPath(validating: characteristic.id), path.isBeneath(link.path),
            view.characteristics[path] != nil
        else {
            throw BluetoothError(
                .attributeNotFound, "the device has no characteristic \(characteristic.uuid)",
                advice: "Discover the services again.", subject: subject(link.path))
        }
        if let use = link.characteristics[path] { return (link, path, use) }
        let use = CharacteristicUse()
        link.characteristics[path] = use
        return (link, path, use)
    }
}
