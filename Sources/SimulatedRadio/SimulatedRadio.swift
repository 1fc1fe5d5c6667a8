// SPDX-License-Identifier: MIT

public import BluetoothLE

/// One adapter of a `SimulatedMedium`, in both roles, with its switches.
///
/// Several sessions may be served at the same time: their services stand one after another in one GATT database. A
/// session may have no services (it only advertises) or no advertisement (it only serves).
public final class SimulatedRadio: Radio {
    let adapter: AdapterHandle
    public let name: String
    public let address: BluetoothAddress

    var id: AdapterID { adapter.id }
    var core: MediumCore { adapter.core }

    init(adapter: AdapterHandle, name: String, address: BluetoothAddress) {
        self.adapter = adapter
        self.name = name
        self.address = address
    }

    public var clock: any MonotonicClock { core.clock }

    /// By this name every other radio of the medium knows this one, in both roles.
    public var peerIdentifier: PeerIdentifier { PeerIdentifier(address.description) }

    public var configuration: AdapterConfiguration {
        get { core.turn { $0.adapters[self.id]?.configuration } ?? AdapterConfiguration() }
        set { core.turn { $0.configure(self.id, newValue) } }
    }

    public func adapterStatuses() -> AsyncStream<AdapterStatus> {
        let mailbox = Mailbox<AdapterStatus>(.newest(Limits.adapterStatuses), activity: core.activity)
        let adapter = adapter
        guard let reader = core.turn({ $0.addStatusReader(adapter.id, mailbox) }) else {
            return AsyncStream { $0.finish() }
        }
        let token = ReleaseToken { adapter.core.turn { $0.removeStatusReader(adapter.id, reader) } }
        return mailbox.stream(keeping: token)
    }

    // MARK: - Central

    public func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan {
        if Task.isCancelled { throw .cancelled }
        let mailbox = Mailbox<ScanEvent>(.newest(Limits.scanEvents), activity: core.activity)
        let adapter = adapter
        let scan = try core.turn { (state) throws(BluetoothError) in
            try state.startScan(adapter.id, filter, mailbox)
        }
        let token = ReleaseToken { adapter.core.turn { $0.stopScan(adapter.id, scan) } }
        return Scan(events: mailbox.stream(keeping: token)) { token.release() }
    }

    public func connect(
        to peer: PeerIdentifier,
        timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        if Task.isCancelled { throw .cancelled }
        let promise = Promise<EstablishedLink>()
        let core = core
        let operation = try core.turn { (state) throws(BluetoothError) in
            try state.connect(self.id, peer, timeout: timeout, promise)
        }
        let link = try await promise.value { core.turn { $0.cancelConnect(operation) } }
        return SimulatedConnection(adapter: adapter, peer: peer, link: link)
    }

    // MARK: - Peripheral

    public var notificationScope: NotificationScope { configuration.notificationScope }

    public func serve(
        _ services: [LocalService],
        advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> any PeripheralSession {
        try await open(services, advertising: advertisement)
    }

    /// `serve`, for those who want to see more of the session than the contract shows.
    package func open(
        _ services: [LocalService],
        advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> SimulatedSession {
        if Task.isCancelled { throw .cancelled }
        let mailbox = Mailbox<PeripheralEvent>(.eventsBeforeRequests, activity: core.activity)
        let session = try core.turn { (state) throws(BluetoothError) in
            try state.serve(self.id, services, advertisement, mailbox)
        }
        return SimulatedSession(adapter: adapter, id: session, mailbox: mailbox)
    }

    // MARK: - Switches

    /// Switches the adapter on or off. Off: links end, scans pause, sessions are interrupted; on: they go on.
    public func setPowered(_ powered: Bool) {
        core.turn { state in state.change(self.id, .powerOff) { $0.isPowered = powered } }
    }

    /// Pulls the adapter out; peers notice after the supervision time-out.
    public func unplug() {
        core.turn { state in state.change(self.id, .unplug) { $0.isPlugged = false } }
    }

    /// Puts the adapter back, with power as it was.
    public func plug() {
        core.turn { state in state.change(self.id, .unplug) { $0.isPlugged = true } }
    }

    /// Ends this adapter's Bluetooth service. All that was registered is lost to the peers.
    public func stopService() {
        core.turn { state in state.change(self.id, .serviceLoss) { $0.isServiceUp = false } }
    }

    /// Starts the Bluetooth service. Scans and sessions register anew.
    public func startService() {
        core.turn { state in state.change(self.id, .serviceLoss) { $0.isServiceUp = true } }
    }

    /// Stops the Bluetooth service and starts it again.
    ///
    /// - Parameter downtime: On the medium's clock.
    public func restartService(downFor downtime: Duration = .zero) {
        stopService()
        core.turn { state in
            let id = self.id
            state.after(downtime) { $0.change(id, .serviceLoss) { $0.isServiceUp = true } }
        }
    }

    /// Lets something go wrong at this adapter, once; see `Fault`. At most 1,024 wait at the same time.
    public func inject(_ fault: Fault) {
        core.turn { $0.inject(fault, self.id) }
    }

    /// Forgets the faults that have not happened.
    public func clearFaults() {
        core.turn { $0.adapters[self.id]?.faults.removeAll() }
    }
}
