// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus
internal import SimulatedRadio

/// An adapter of the simulated medium as bluetoothd's controller.
@BlueZSimulatorActor
final class MediumController {
    let radio: SimulatedRadio
    weak var delegate: (any ControllerDelegate)?
    private var observation: ReleaseToken?
    private var scan: Scan?
    private var scanWanted = false
    /// Connection attempts that wait until the device is heard; see `connect(to:timeout:)`.
    private var awaited: [BluetoothAddress: [CheckedContinuation<Void, Never>]] = [:]
    private(set) var applications: [UInt64: (services: [LocalService], session: SimulatedSession?)] = [:]
    private var advertisements: [UInt8: SimulatedSession] = [:]
    /// The latest change of what is advertised; they are made one after another, as the kernel does.
    private var advertising: Task<Void, Never>?
    private var centrals: [CentralID: LinkInfo] = [:]
    /// Links of the daemon before, which was killed.
    private var leftovers: Set<UInt64> = []
    private(set) var isPowered: Bool
    private var outgoing: Task<Void, Never>?

    init(radio: SimulatedRadio) {
        self.radio = radio
        isPowered = radio.status.state == .poweredOn
    }

    var clock: any MonotonicClock { radio.clock }
    var address: BluetoothAddress { radio.address }

    func setPowered(_ powered: Bool) { radio.setPowered(powered) }

    /// Starts to listen to the radio. Its handler runs on any thread, so everything is handed to the loop, in order.
    ///
    /// - Returns: The links that are up already.
    func attach(_ delegate: any ControllerDelegate) -> [LinkInfo] {
        self.delegate = delegate
        isPowered = radio.status.state == .poweredOn
        observation = radio.observe { [weak self] event in
            BlueZSimulatorActor.loop.execute { [weak self] in
                BlueZSimulatorActor.assumeIsolated { self?.take(event) }
            }
        }
        let links = radio.adopt()
        leftovers = Set(links.map(\.id))
        return links
    }

    /// Ends what this daemon had on the radio: everything, or, if it is killed, what the kernel does not go on with.
    func detach(_ end: DaemonEnd) {
        observation?.release()
        observation = nil
        delegate = nil
        scan = nil
        scanWanted = false
        applications = [:]
        advertisements = [:]
        centrals = [:]
        leftovers = []
        for continuation in awaited.values.joined() { continuation.resume() }
        awaited = [:]
        switch end {
        case .stopped: radio.reset()
        case .killed: radio.abandon()
        }
    }

    private nonisolated static func stop(_ session: SimulatedSession?) {
        guard let session else { return }
        Task { await session.stop() }
    }

    private func take(_ event: AdapterObservation) {
        switch event {
        case .report(let report):
            for one in awaited.removeValue(forKey: report.address) ?? [] { one.resume() }
            if scanWanted {
                delegate?.heard(
                    AirReport(
                        address: report.address, advertisement: report.advertisement, rssi: report.rssi ?? 127,
                        flags: 0x06))
            }
            if awaited.isEmpty, !scanWanted { scan = nil }
        case .linkUp(let link) where !link.isCentral && !leftovers.contains(link.id):
            let central = CentralID(link: link.id)
            centrals[central] = link
            delegate?.centralConnected(central, address: link.address, mtu: link.attMTU)
        case .linkDown(let link, let reason) where leftovers.contains(link.id):
            leftovers.remove(link.id)
            delegate?.leftoverLost(link, reason: reason)
        case .linkDown(let link, let reason) where !link.isCentral:
            let central = CentralID(link: link.id)
            centrals[central] = nil
            delegate?.centralDisconnected(central, reason: reason)
        case .status(let status):
            powerChanged(status.state == .poweredOn)
        case .linkUp, .linkDown, .subscribed, .unsubscribed:
            break
        }
    }

    private func powerChanged(_ powered: Bool) {
        guard powered != isPowered else { return }
        isPowered = powered
        if powered {
            // Applications outlive a power cycle, advertisements do not.
            for (id, application) in applications where application.session == nil {
                Task { try? await open(id, application.services) }
            }
        } else {
            for (_, session) in advertisements { Self.stop(session) }
            advertisements = [:]
            scan = nil
            scanWanted = false
        }
        delegate?.powerChanged(powered)
    }

    // MARK: Central

    /// Scans from now on: a stop that follows at once is one of this scan.
    func startScanning() -> Task<Void, Never> {
        scanWanted = true
        return Task { await openScan() }
    }

    func stopScanning() {
        scanWanted = false
        if awaited.isEmpty { scan = nil }
    }

    private func openScan() async {
        guard scan == nil else { return }
        let opened = try? await radio.scan(for: ScanFilter())
        if scan == nil, scanWanted || !awaited.isEmpty { scan = opened }
    }

    /// Connects as the kernel does: it scans until the device is heard, and then connects.
    func connect(
        to address: BluetoothAddress, timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        let deadline = clock.now.advanced(by: timeout)
        let peer = PeerIdentifier(address.description)
        if !radio.knownPeers.contains(peer) { await hear(address, timeout: timeout) }
        if Task.isCancelled { throw .cancelled }
        let rest = clock.now.duration(to: deadline)
        guard rest > .zero else { throw BluetoothError(.timedOut, "nobody advertises from \(address)") }
        return try await radio.connect(to: peer, timeout: rest)
    }

    private func hear(_ address: BluetoothAddress, timeout: Duration) async {
        let timer = Timers(clock: clock).after(timeout) { [weak self] in self?.giveUp(address) }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                awaited[address, default: []].append(continuation)
                Task { await openScan() }
            }
        } onCancel: {
            Task { @BlueZSimulatorActor in self.giveUp(address) }
        }
        timer.cancel()
    }

    private func giveUp(_ address: BluetoothAddress) {
        for one in awaited.removeValue(forKey: address) ?? [] { one.resume() }
        if awaited.isEmpty, !scanWanted { scan = nil }
    }

    // MARK: Peripheral

    /// Serves an application's services; without power they wait for it.
    func serve(_ application: UInt64, _ services: [LocalService]) async throws(BluetoothError) {
        applications[application] = (services, nil)
        do {
            try await open(application, services)
        } catch {
            guard error.code == .poweredOff || error.code == .adapterNotFound else {
                applications[application] = nil
                throw error
            }
        }
    }

    private func open(_ application: UInt64, _ services: [LocalService]) async throws(BluetoothError) {
        let session = try await radio.open(services, advertising: nil)
        guard applications[application] != nil else { return await session.stop() }
        applications[application]?.session = session
        Task { [weak self] in
            for await event in session.events { self?.take(event, of: application, session) }
        }
    }

    func endServing(_ application: UInt64) async {
        // bluetoothd takes a connection's messages in their order: what was notified before the application went has
        // left.
        await outgoing?.value
        await applications.removeValue(forKey: application)?.session?.stop()
    }

    func startAdvertising(_ instance: UInt8, _ request: AdvertisementRequest) async throws(BluetoothError) {
        try await changeAdvertising([instance], to: request).get()
    }

    /// One change, so that none gets in between.
    func stopAdvertising(_ instances: [UInt8]) async {
        _ = await changeAdvertising(instances, to: nil)
    }

    private func changeAdvertising(
        _ instances: [UInt8], to request: AdvertisementRequest?
    ) async -> Result<Void, BluetoothError> {
        let change = Task { [before = advertising] () -> Result<Void, BluetoothError> in
            await before?.value
            for instance in instances { await advertisements.removeValue(forKey: instance)?.stop() }
            guard let request, let instance = instances.first else { return .success(()) }
            do throws(BluetoothError) {
                let session = try await radio.open([], advertising: request)
                // Pulled out meanwhile: whoever comes next has the radio.
                if delegate == nil { await session.stop() } else { advertisements[instance] = session }
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        advertising = Task { _ = await change.value }
        return await change.value
    }

    private func take(_ event: PeripheralEvent, of application: UInt64, _ session: SimulatedSession) {
        switch event {
        case .read(let request):
            guard let central = central(of: request.id, request.central, session), let delegate else { return }
            delegate.centralRead(
                central, ServedCharacteristicID(application: application, position: request.characteristic),
                offset: request.offset
            ) { result in
                let response: RequestResponse =
                    switch result {
                    case .success(let value): .value(value)
                    case .failure(let error): .refuse(error)
                    }
                self.send { await session.respond(to: request.id, with: response) }
            }
        case .write(let request):
            guard let central = central(of: request.id, request.central, session), let delegate else { return }
            delegate.centralWrote(
                central, ServedCharacteristicID(application: application, position: request.characteristic),
                request.value, offset: request.offset
            ) { error in
                self.send { await session.respond(to: request.id, with: error.map { .refuse($0) } ?? .accept) }
            }
        case .subscribed(let position, let peer, _):
            guard let central = central(peer) else { return }
            delegate?.centralSubscribed(central, ServedCharacteristicID(application: application, position: position))
        case .unsubscribed(let position, let peer):
            guard let central = central(peer) else { return }
            delegate?.centralUnsubscribed(central, ServedCharacteristicID(application: application, position: position))
        case .serving, .interrupted, .connected, .disconnected:
            break
        }
    }

    private func central(of request: RequestID, _ peer: PeerIdentifier, _ session: SimulatedSession) -> CentralID? {
        if let link = session.details(of: request)?.link { return CentralID(link: link.id) }
        return central(peer)
    }

    private func central(_ peer: PeerIdentifier?) -> CentralID? {
        centrals.first { $0.value.peer == peer }?.key
    }

    /// Sends one notification to every central that has subscribed, cut to its MTU less a header of this many bytes.
    ///
    /// The radio knows best who has: a subscription is acknowledged on the air before it is heard of here.
    func notify(_ value: [UInt8], on characteristic: ServedCharacteristicID, header: Int) {
        guard let session = applications[characteristic.application]?.session else { return }
        for link in session.subscribers(of: characteristic.position) {
            let room = min(Limits.attributeBytes, max(0, link.attMTU - header))
            let part = Array(value.prefix(room))
            send { try? await session.notify(part, on: characteristic.position, to: link.peer) }
        }
    }

    /// Answers and notifications leave one after another, in the order in which the application gave them.
    private func send(_ body: @escaping @Sendable () async -> Void) {
        let before = outgoing
        outgoing = Task {
            await before?.value
            await body()
        }
    }

    func disconnect(_ central: CentralID) {
        if let peer = centrals[central]?.peer { radio.disconnect(peer) }
    }

    func disconnect(_ leftover: LinkInfo) { radio.disconnect(leftover.peer) }
}
