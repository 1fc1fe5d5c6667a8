// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

// Links that we make (rules 19, 20, 23, 24).
extension RadioCore {
    /// - Returns: The link's id.
    func connect(to peer: PeerIdentifier, timeout: Duration) async throws(BluetoothError) -> UInt64 {
        beginOperation()
        defer { endOperation() }
        try await ready()
        let adapter = try requireAdapter()
        guard let path = ObjectPath(validating: peer.rawValue), let device = view.devices[path] else {
            throw BluetoothError(
                .peerNotFound, "the Bluetooth service does not know this device", advice: "Scan again.",
                subject: peer.rawValue)
        }
        guard activeLinks[path] == nil else {
            throw BluetoothError(.busy, "there is a link to this device, or one in the making", subject: subject(path))
        }
        guard activeLinks.count < Limits.links else {
            throw BluetoothError(.limitExceeded, "this radio has \(Limits.links) links already")
        }
        let link = Link(id: newID(), path: path)
        links[link.id] = link
        activeLinks[path] = link.id
        // Never call Connect on a device that is connected (rule 20).
        if device.connected {
            link.isOurs = false
            link.phase = .up
            return link.id
        }
        if let error = await attempt(link, adapter, timeout: timeout) {
            linkDown(link.id, .local, error)
            links[link.id] = nil
            releaseIfUnused()
            throw error
        }
        return link.id
    }

    private func attempt(_ link: Link, _ adapter: Adapter1, timeout: Duration) async -> BluetoothError? {
        let waiter = newWaiter()
        link.connectWaiter = waiter
        let holds = !adapter.isCentralWhileAdvertising && !sessions.isEmpty
        if holds { await holdAdvertising() }
        defer { if holds { releaseAdvertising() } }
        // Everything may have ended while the advertising was being paused.
        if case .down = link.phase {
            forgetWaiter(waiter)
            return link.error
        }
        let (id, path) = (link.id, link.path)
        send(Device1.connect(path)) { core, result in core.connectAnswered(id, result) }
        guard let error = await wait(waiter, timeout: timeout) else { return nil }
        link.connectWaiter = nil
        // `Disconnect` calls a pending `Connect` off; whatever happens, no link of ours stays (rule 23), not one either that
        // bluetoothd has said yes to and not shown yet.
        let mayComeAbout = link.connectAnswer != .refused || view.devices[path]?.connected == true
        if error.code == .cancelled || error.code == .timedOut || link.isOurs && mayComeAbout && usableAdapter != nil {
            _ = await request(Device1.disconnect(path))
        }
        guard error.code == .timedOut else { return error }
        return BluetoothError(
            .timedOut, "no link came about within \(timeout)", advice: "Move closer, and scan again.",
            subject: subject(path))
    }

    private func connectAnswered(_ id: UInt64, _ result: Result<[DBusValue], DBusError>) {
        guard let link = links[id], link.phase == .connecting, let waiter = link.connectWaiter else { return }
        let connected = view.devices[link.path]?.connected == true
        switch result {
        case .success:
            link.connectAnswer = .promised
            if connected { return linkUp(link) }
            askConnected(link.path)
            // One branch of bluetoothd answers success without a link (rule 20): `Connected` decides.
            loop.schedule(after: Limits.connectedLag) { [weak self] in
                self?.assumeIsolated { core in
                    let error = BluetoothError(
                        .connectionFailed, "the Bluetooth service reported a link that is not there",
                        advice: "Try again.", subject: core.subject(link: id))
                    _ = core.wake(waiter, with: error)
                }
            }
        case .failure(let error):
            link.connectAnswer = .refused
            switch error.name {
            // Another program's link, or its attempt: whatever comes of it is not ours to take down.
            case BlueZError.alreadyConnected, BlueZError.inProgress: link.isOurs = false
            default: break
            }
            if error.name == BlueZError.alreadyConnected, connected { return linkUp(link) }
            wake(waiter, with: BlueZFailure.error(error, during: .connect, subject: subject(link.path)))
        }
    }

    /// Since 5.66 bluetoothd never signals `Connected` for a link whose ATT socket is connected before the kernel tells of
    /// the link: att_connect_cb() has noted it silently, and device_add_connection() finds nothing new (src/device.c,
    /// commit 73b301372).
    private func askConnected(_ path: ObjectPath) {
        send(Device1.isConnected(path)) { core, result in
            guard case .success(let body) = result, body.first?.asBool == true else { return }
            core.handle(
                core.view.changed(path, BlueZName.device, ["Connected": .bool(true)], invalidated: []))
        }
    }

    private func linkUp(_ link: Link) {
        guard let waiter = link.connectWaiter, isWaiting(waiter) else { return }
        link.connectWaiter = nil
        link.phase = .up
        wake(waiter)
    }

    /// `Connected` changed.
    func connectedChanged(_ path: ObjectPath) {
        let connected = view.devices[path]?.connected == true
        guard let id = activeLinks[path], let link = links[id] else {
            return connected ? centralCame(path) : centralGone(path)
        }
        if !connected { centralGone(path) }
        switch link.phase {
        // `Connect`'s answer comes after `Connected`: it says whether the link can be used.
        case .connecting:
            if connected, link.connectAnswer == .promised { linkUp(link) }
        case .up where !connected:
            let error = BluetoothError(.disconnected, "the link went down", subject: subject(path))
            linkDown(id, link.toldReason ?? .unknown, error)
        case .closing where !connected:
            linkDown(id, .local, BluetoothError(.notConnected, "the link was taken down", subject: subject(path)))
        default: break
        }
    }

    /// The end of a link, however it came about.
    func linkDown(_ id: UInt64, _ reason: DisconnectReason, _ error: BluetoothError) {
        guard let link = links[id] else { return }
        if case .down = link.phase { return }
        let wasClosing = link.phase == .closing
        link.phase = .down(wasClosing ? .local : reason)
        link.error = error
        activeLinks[link.path] = nil
        if let waiter = link.connectWaiter { wake(waiter, with: error) }
        wake(&link.resolvedWaiters, with: error)
        wake(&link.attributeWaiters, with: error)
        for waiter in link.operationWaiters { wake(waiter, with: error) }
        link.operationWaiters = []
        for use in link.characteristics.values {
            if case .starting(var waiting) = use.notify { wake(&waiting, with: error) }
            wake(&use.queue, with: error)
            use.finish()
        }
        link.characteristics = [:]
        wake(&link.downWaiters)
        releaseIfUnused()
    }

    /// Comes to its end even in a cancelled task (rule 23).
    func disconnect(_ id: UInt64) async {
        guard let link = links[id] else { return }
        switch link.phase {
        case .down: return
        case .closing:
            await waitUntilDown(link, cancellable: false)
        case .up where !link.isOurs && view.devices[link.path]?.paired == true:
            leave(link)
        case .up, .connecting:
            beginOperation()
            defer { endOperation() }
            link.phase = .closing
            let (path, asked) = (link.path, generation)
            send(Device1.disconnect(path)) { core, result in
                // Answered when the link is down, or when there was none.
                guard core.generation == asked else { return }
                if case .success = result {
                    // Before 5.79 the answer comes first and the signal when bluetoothd is idle (src/device.c,
                    // device_remove_connection): who connects again in between must not be given the link of before.
                    core.handle(
                        core.view.changed(path, BlueZName.device, ["Connected": .bool(false)], invalidated: []))
                }
                let error = BluetoothError(
                    .notConnected, "the link was taken down", subject: core.subject(path))
                core.linkDown(id, .local, error)
            }
            await waitUntilDown(link, cancellable: false)
        }
    }

    /// A paired device that was connected before us: its user's headphones, keyboard or phone. `Disconnect` would end what it
    /// does over BR/EDR, too (src/device.c, `device_request_disconnect`); a link that a killed program has left is not paired.
    private func leave(_ link: Link) {
        for (path, use) in link.characteristics {
            if case .on = use.notify { stopNotify(path, use) }
        }
        linkDown(
            link.id, .local,
            BluetoothError(.notConnected, "the link was left to whoever made it", subject: subject(link.path)))
    }

    private func waitUntilDown(_ link: Link, cancellable: Bool) async {
        let waiter = newWaiter()
        link.downWaiters.append(waiter)
        _ = await wait(waiter, timeout: cancellable ? nil : Limits.disconnect + .seconds(1), cancellable: cancellable)
        link.downWaiters.removeAll { $0 == waiter }
    }

    func disconnection(_ id: UInt64) async -> DisconnectReason {
        guard let link = links[id] else { return .local }
        if case .down(let reason) = link.phase { return reason }
        await waitUntilDown(link, cancellable: true)
        if case .down(let reason) = link.phase { return reason }
        return .local
    }

    /// Nobody holds the connection any more.
    func abandonLink(_ id: UInt64) {
        guard let link = links[id] else { return }
        if case .down = link.phase {
            links[id] = nil
            return
        }
        Task {
            if link.isOurs {
                await self.disconnect(id)
            } else if link.phase == .up {
                self.leave(link)
            }
            self.linkDown(id, .local, .cancelled)
            self.links[id] = nil
        }
    }

    func subject(link id: UInt64) -> String? { links[id].flatMap { subject($0.path) } }

    /// A device's name and address for people.
    func subject(_ path: ObjectPath) -> String {
        let device = view.devices[path]
        let address = device?.address?.description ?? path.lastElement
        return device?.advertisement.localName.map { "\($0), \(address)" } ?? address
    }
}
