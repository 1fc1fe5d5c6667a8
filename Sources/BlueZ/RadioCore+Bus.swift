// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

// The connection to the bus, bluetoothd on it, and the object view (rules 25, 26).
extension RadioCore {
    /// Waits until the object view is there.
    ///
    /// - Throws: What keeps it from being there: `serviceUnavailable`, `unauthorized`, `resetting`, `cancelled`.
    func ready() async throws(BluetoothError) {
        if case .loaded = viewState { return }
        startConnector()
        if connection == nil, let busError { throw BlueZFailure.error(busError, during: .reach) }
        if case .failed = viewState { askAgain() }
        let id = newWaiter()
        readyWaiters.append(id)
        if let error = await wait(id, timeout: .seconds(30)) { throw error }
    }

    /// Brackets a call of the contract, so that the connection stays.
    func beginOperation() {
        operations += 1
        lingerTimer?.cancel()
        lingerTimer = nil
    }

    func endOperation() {
        operations -= 1
        releaseIfUnused()
    }

    /// Lets go of the bus some time after the last use: a scan is followed by a connect.
    func releaseIfUnused() {
        lingerTimer?.cancel()
        lingerTimer = nil
        guard connector != nil, !isUsed else { return }
        stopReviving()
        lingerTimer = loop.schedule(after: Limits.linger) { [weak self] in
            self?.assumeIsolated { core in
                core.lingerTimer = nil
                if !core.isUsed { core.release() }
            }
        }
    }

    private var isUsed: Bool {
        operations > 0 || !statusStreams.isEmpty || !scans.isEmpty || !sessions.isEmpty || !activeLinks.isEmpty
    }

    /// Ends everything, and tells the system.
    func shutdown() async {
        for id in scans.keys { await stopScan(id) }
        for id in sessions.keys { await stopSession(id) }
        for id in activeLinks.values { await disconnect(id) }
        for stream in statusStreams.values { stream.finish() }
        statusStreams = [:]
        release()
    }

    /// Closes the connection and forgets what came over it.
    func release() {
        lingerTimer?.cancel()
        lingerTimer = nil
        connector?.stop()
        connector = nil
        forgetBus(BluetoothError(.resetting, "the radio was shut down"))
        busError = nil
        hadService = false
        viewState = .none
        lastStatus = nil
    }

    func startConnector() {
        lingerTimer?.cancel()
        lingerTimer = nil
        guard connector == nil else { return }
        let connector = BusConnector(address, on: loop)
        self.connector = connector
        busError = nil
        connector.start { [weak self, weak connector] event in
            self?.assumeIsolated { core in
                guard core.connector === connector else { return }
                core.handle(event)
            }
        }
    }

    private func handle(_ event: BusEvent) {
        switch event {
        case .connected(let connection):
            busError = nil
            self.connection = connection
            open(connection)
        case .disconnected(let error):
            busError = error
            let failure = BlueZFailure.error(error, during: .reach)
            if connection != nil { forgetBus(failure) }
            wake(&readyWaiters, with: failure)
            publishStatus()
        }
    }

    private func open(_ connection: DBusConnection) {
        watch = ServiceWatch()
        watchService(on: connection)
    }

    /// AddMatch before GetManagedObjects (rule 25), so that no change falls between them. Asks for what is not there yet.
    private func watchService(on connection: DBusConnection) {
        stopReviving()
        viewState = .loading
        if watch.signals == .off {
            watch.signals = .asked
            watchSignals(on: connection)
        }
        if watch.owner == .off {
            watch.owner = .asked
            Task(executorPreference: loop) { [weak self] in await self?.watchOwner(on: connection) }
        }
    }

    private func watchSignals(on connection: DBusConnection) {
        let rule = MatchRule(sender: BlueZName.service)
        connection.assumeIsolated { connection in
            _ = connection.addMatch(rule) { [weak self, weak connection] message in
                self?.assumeIsolated { core in
                    guard core.connection === connection else { return }
                    core.receive(message)
                }
            } completion: { [weak self, weak connection] result in
                self?.assumeIsolated { core in
                    guard core.connection === connection else { return }
                    switch result {
                    case .success:
                        core.watch.signals = .on
                        core.loadViewIfWanted()
                    case .failure(let error):
                        core.watch.signals = .off
                        core.watchFailed(error)
                    }
                }
            }
        }
    }

    private func watchOwner(on connection: DBusConnection) async {
        do throws(DBusError) {
            _ = try await connection.watchOwner(of: BlueZName.service) { [weak self, weak connection] owner in
                self?.assumeIsolated { core in
                    guard core.connection === connection else { return }
                    core.ownerChanged(owner)
                }
            }
        } catch {
            guard self.connection === connection else { return }
            watch.owner = .off
            watchFailed(error)
        }
    }

    /// A view without what follows it would grow old unnoticed, and without an owner nobody knows whom to believe.
    private func watchFailed(_ error: DBusError) {
        generation += 1
        viewRequest = nil
        viewFailed(BlueZFailure.error(error, during: .reach))
    }

    /// After a watch that was asked for again.
    private func loadViewIfWanted() {
        guard watch.isComplete, !isLoading, case .loading = viewState else { return }
        loadView()
    }

    /// The first call tells who owns the name now.
    private func ownerChanged(_ newOwner: String?) {
        let before = owner
        if before != nil, newOwner != before {
            forgetService(
                BluetoothError(.resetting, "the Bluetooth service went away", advice: BlueZFailure.seeItsState))
        }
        owner = newOwner
        watch.owner = .on
        if watch.signals == .off, let connection {
            watchService(on: connection)
            return publishStatus()
        }
        // Without an owner, the first time: asking starts the service, where the bus can. The owner that appears
        // thereby answers what was asked already.
        if !isLoading, newOwner != nil || before == nil { loadView() }
        publishStatus()
    }

    private var isLoading: Bool { viewRequest == generation }

    private func loadView() {
        stopReviving()
        generation += 1
        viewRequest = generation
        viewState = .loading
        let asked = generation
        let call = DBusCall(
            BlueZName.service, .root, BlueZName.objectManager, "GetManagedObjects",
            returning: "a{oa{sa{sv}}}")
        send(call) { core, result in
            guard core.generation == asked else { return }
            core.viewRequest = nil
            switch result {
            case .success(let body):
                core.view.load(body.first?.asManagedObjects ?? [:])
                core.viewState = .loaded
                core.viewPause.reset()
                core.hadService = true
                core.wake(&core.readyWaiters)
                core.adapterMayHaveChanged()
            case .failure(let error):
                core.viewFailed(BlueZFailure.error(error, during: .reach))
            }
        }
    }

    private func viewFailed(_ error: BluetoothError) {
        viewState = .failed(error)
        wake(&readyWaiters, with: error)
        publishStatus()
        reviveView()
    }

    /// Has a failed view asked for again after a pause, as long as anybody wants it: who reads the adapter's states, or
    /// has a scan or a session that waits, calls nothing that would do so.
    func reviveView() {
        guard case .failed = viewState, viewTimer == nil, connection != nil, isUsed else { return }
        // A service that is not there is told of when it comes. Asking would start it, over and over.
        guard owner != nil || !watch.isComplete else { return }
        viewTimer = loop.schedule(after: viewPause.next()) { [weak self] in
            self?.assumeIsolated { core in
                core.viewTimer = nil
                guard case .failed = core.viewState, core.isUsed else { return }
                core.askAgain()
            }
        }
    }

    private func stopReviving() {
        viewTimer?.cancel()
        viewTimer = nil
    }

    /// Calling it starts a service that the bus can start.
    private func askAgain() {
        guard let connection else { return }
        if watch.isComplete { loadView() } else { watchService(on: connection) }
    }

    /// bluetoothd is gone, and with it every object, registration and subscription.
    func forgetService(_ error: BluetoothError) {
        generation += 1
        viewRequest = nil
        stopReviving()
        viewPause.reset()
        owner = nil
        viewState = .failed(error)
        view = ObjectView()
        wake(&readyWaiters, with: error)
        chosenAdapter = nil
        usableAdapter = nil
        for session in sessions.values { session.applicationAdapter = nil }
        adapterLost(error)
        for id in activeLinks.values { linkDown(id, .adapterLost, error) }
    }

    private func forgetBus(_ error: BluetoothError) {
        connection = nil
        for session in sessions.values { session.isExported = false }
        forgetService(error)
    }

    // MARK: Signals

    private func receive(_ message: DBusMessage) {
        // Before the view is there its snapshot will tell all this.
        guard case .loaded = viewState, let path = message.path, let member = message.member else { return }
        switch (message.interface, member, message.signature.string) {
        case (BlueZName.properties, "PropertiesChanged", "sa{sv}as"):
            guard let interface = message.body[0].asString, let changed = message.body[1].asDictionary else { return }
            let invalidated = message.body[2].asStrings ?? []
            handle(view.changed(path, interface, changed, invalidated: invalidated))
        case (BlueZName.objectManager, "InterfacesAdded", "oa{sa{sv}}"):
            guard let path = message.body[0].asObjectPath, let interfaces = message.body[1].asInterfaces else { return }
            handle(view.added(path, interfaces))
        case (BlueZName.objectManager, "InterfacesRemoved", "oas"):
            guard let path = message.body[0].asObjectPath, let interfaces = message.body[1].asStrings else { return }
            handle(view.removed(path, interfaces))
        case (BlueZName.device, "Disconnected", "ss"):
            // Comes just before `Connected` = false (src/device.c, device_remove_connection).
            guard let id = activeLinks[path] else { return }
            links[id]?.toldReason = Device1.disconnectReason(message.body)
        default:
            break
        }
    }

    func handle(_ changes: [ObjectView.Change]) {
        for change in changes {
            switch change {
            case .adapter:
                adapterMayHaveChanged()
            case .deviceAdded(let path, let change), .deviceChanged(let path, let change):
                if change.contains(.connected) { connectedChanged(path) }
                if change.contains(.servicesResolved) { servicesResolvedChanged(path) }
                if !change.isDisjoint(with: [.heard, .advertisement]) { deviceHeard(path, change) }
            case .deviceRemoved(let path, let connected):
                deviceGone(path)
                if connected || activeLinks[path] != nil { centralGone(path) }
                if let id = activeLinks[path] {
                    let error = BluetoothError(
                        .peerNotFound, "the Bluetooth service no longer knows this device", advice: "Scan again.")
                    linkDown(id, links[id]?.toldReason ?? .unknown, error)
                }
            case .characteristicAdded(let device, _):
                characteristicAdded(device)
            case .characteristicRemoved(let device, let path):
                characteristicRemoved(device, path)
            case .value(let device, let path, let value):
                valueChanged(device, path, value)
            }
        }
    }
}
