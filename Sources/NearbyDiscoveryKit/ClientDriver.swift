// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

/// Feeds a `ClientMachine` with what the radio, the app and the clock say, and performs its actions, one at a time.
///
/// One task owns it and calls `run` once, then `closeLinks`.
final class ClientDriver {
    enum Input: Sendable {
        case scan(ScanEvent, run: Int)
        case scanStarted(Scan, run: Int)
        case scanFailed(BluetoothError, run: Int)
        case link(AttemptID, LinkEvent)
        case adapterReady
        case chosen(PeerIdentifier)
        case timer
        /// The adapter has not become usable in the time that the policy gives.
        case giveUp
        case cancelled
    }

    private let configuration: NearbyClient.Configuration
    private let radio: any Central
    private let hub: Broadcast<ClientEvent>
    private let inbox: Inbox<Input>
    private var machine: ClientMachine
    private var timer: DeadlineTimer
    private var patience: DeadlineTimer
    /// The scan once there is one; cancelling it calls the start off.
    private var scanning: Task<Scan?, Never>?
    private var scanPump: Task<Void, Never>?
    /// Counts the scans: what an earlier one still says is not heard.
    private var scanRun = 0
    private var adapterWatch: Task<Void, Never>?
    private var wantsScan = false
    private var hasScanned = false
    private var isPatienceOver = false
    private var failedScans = 0
    private var began: ContinuousClock.Instant?
    private var unavailability: BluetoothError?
    private var links: LinkTable
    private var candidates = CandidateList()
    private var result: Result<Handoff, NearbyError>?

    init(
        configuration: NearbyClient.Configuration,
        radio: any Central,
        hub: Broadcast<ClientEvent>,
        inbox: Inbox<Input>
    ) throws(NearbyError) {
        self.configuration = configuration
        self.radio = radio
        self.hub = hub
        self.inbox = inbox
        let machineConfiguration = try configuration.machineConfiguration()
        do throws(EnvelopeError) {
            machine = try ClientMachine(machineConfiguration)
        } catch {
            throw NearbyError(envelope: error, of: "join request")
        }
        timer = DeadlineTimer(clock: radio.clock, executor: radio.taskExecutor) { inbox.post(.timer) }
        patience = DeadlineTimer(clock: radio.clock, executor: radio.taskExecutor) { inbox.post(.giveUp) }
        links = LinkTable(radio: radio, awaiting: configuration.awaitedCharacteristic) { attempt, event in
            await inbox.send(.link(attempt, event))
        }
    }

    /// Searches until there is a result. Scanning has ended by then; links may still be going down.
    func run() async -> Result<Handoff, NearbyError> {
        let result = await withTaskCancellationHandler {
            await loop()
        } onCancel: { [inbox] in
            inbox.post(.cancelled)
        }
        timer.set(nil)
        patience.set(nil)
        adapterWatch?.cancel()
        inbox.close()
        await stopScan()
        return result
    }

    /// Takes every link down; the task ends when they are.
    func closeLinks() -> Task<Void, Never> { links.closeAll() }

    private func loop() async -> Result<Handoff, NearbyError> {
        if case .fail(let grace) = configuration.whenUnavailable { patience.set(radio.clock.now + grace.bounded) }
        began = radio.clock.now
        await perform(machine.started(at: radio.clock.now))
        while result == nil {
            timer.set(machine.nextDeadline)
            guard let input = await inbox.next() else { return .failure(.cancelled) }
            await perform(react(to: input, at: radio.clock.now))
        }
        return result ?? .failure(.cancelled)
    }

    private func react(to input: Input, at now: ContinuousClock.Instant) -> [ClientAction] {
        switch input {
        case .scan(let event, let run):
            return run == scanRun ? react(to: event, at: now) : []
        case .scanStarted(let scan, let run):
            return run == scanRun ? started(scan, at: now) : []
        case .scanFailed(let error, let run):
            return run == scanRun ? failedToScan(error, at: now) : []
        case .link(let attempt, let event):
            guard let input = links.take(event, of: attempt) else { return [] }
            return machine.exchange(input, attempt, at: now)
        case .adapterReady:
            if wantsScan { startScan() }
            return []
        case .chosen(let peer):
            return machine.chosen(PeerID(peer.rawValue), at: now)
        case .timer:
            timer.fired()
            return machine.timerFired(at: now)
        case .giveUp:
            patience.fired()
            isPatienceOver = true
            if !hasScanned, let unavailability { result = .failure(NearbyError(unavailability)) }
            return []
        case .cancelled:
            return machine.cancelled(at: now)
        }
    }

    private func perform(_ actions: [ClientAction]) async {
        for action in actions {
            switch action {
            case .startScan:
                wantsScan = true
                startScan()
            case .stopScan:
                wantsScan = false
                await stopScan()
            case .connect(let attempt, let peer, let timeout):
                hub.send(.connecting(PeerIdentifier(peer.rawValue)))
                links.connect(attempt, to: PeerIdentifier(peer.rawValue), timeout: timeout)
            case .discover(let attempt):
                links.discover(attempt)
            case .subscribe(let attempt, let instance):
                links.subscribe(attempt, instance: instance)
            case .write(let attempt, let instance, let bytes):
                links.write(attempt, instance: instance, bytes)
            case .readHello(let attempt, let instance):
                links.readHello(attempt, instance: instance)
            case .subscribeToChannel(let attempt, let instance):
                links.subscribeToChannel(attempt, instance: instance)
            case .writeToChannel(let attempt, let instance, let frame):
                links.writeToChannel(attempt, instance: instance, frame)
            case .disconnect(let attempt):
                links.close(attempt)
            case .report(let event):
                report(event)
            case .finish(.handoff(let envelope, let security, let peer, let timing)):
                let handoff = Handoff(
                    message: NearbyMessage(envelope),
                    peer: PeerIdentifier(peer.rawValue),
                    timing: timing,
                    security: security
                )
                hub.send(.received(handoff))
                result = .success(handoff)
            case .finish(.failure(let failure)):
                result = .failure(error(failure))
            }
        }
    }

    private func error(_ failure: ClientFailure) -> NearbyError {
        // Nobody can be heard before there is a scan; a radio that has just been asked does not hang yet.
        if failure.code == .nothingFound, !hasScanned, unavailability == nil, let began,
            radio.clock.now - began >= Limits.scanStart
        {
            return NearbyError(.scanHangs)
        }
        return NearbyError(failure, app: configuration.appId, unavailability: unavailability)
    }

    // MARK: Scanning

    private func startScan() {
        guard scanning == nil else { return }
        scanRun += 1
        scanning = Task(executorPreference: radio.taskExecutor) { [radio, inbox, run = scanRun] in
            do throws(BluetoothError) {
                let scan = try await radio.scan(for: ScanFilter(services: [ServiceUUIDs.service]))
                inbox.post(.scanStarted(scan, run: run))
                return scan
            } catch {
                inbox.post(.scanFailed(error, run: run))
                return nil
            }
        }
    }

    /// Returns when the radio has been told: connecting can depend on it (BlueZ, see `docs/bluez.md`, rule 20).
    private func stopScan() async {
        guard let scanning else { return }
        self.scanning = nil
        scanRun += 1
        scanPump?.cancel()
        scanPump = nil
        scanning.cancel()
        // A task of its own: this one may be cancelled, and the radio must be told all the same.
        await Task(executorPreference: radio.taskExecutor) { await scanning.value?.stop() }.value
    }

    private func started(_ scan: Scan, at now: ContinuousClock.Instant) -> [ClientAction] {
        hasScanned = true
        failedScans = 0
        patience.set(nil)
        scanPump = Task(executorPreference: radio.taskExecutor) { [inbox, run = scanRun] in
            for await event in scan.events { await inbox.send(.scan(event, run: run)) }
        }
        hub.send(.scanning)
        return unavailability == nil ? [] : available(at: now)
    }

    private func failedToScan(_ error: BluetoothError, at now: ContinuousClock.Instant) -> [ClientAction] {
        scanning = nil
        // A radio can take longer to say no than the policy gives it.
        guard error.isUnavailability, hasScanned || !isPatienceOver else {
            result = .failure(NearbyError(error))
            return []
        }
        failedScans += 1
        // The first failure can be a race with the adapter; one after another is a radio that contradicts itself.
        watchAdapter(after: failedScans > 1 ? Limits.tryAgain : nil)
        return unavailable(error, at: now)
    }

    private func react(to event: ScanEvent, at now: ContinuousClock.Instant) -> [ClientAction] {
        switch event {
        case .discovered(let discovery):
            candidates.heard(discovery)
            return machine.sighted(PeerID(discovery.peer.rawValue), rssi: discovery.rssi, at: now)
        case .gone(let peer):
            return machine.gone(PeerID(peer.rawValue), at: now)
        case .paused(let error):
            return unavailable(error, at: now)
        case .resumed:
            return available(at: now)
        }
    }

    private func unavailable(_ error: BluetoothError, at now: ContinuousClock.Instant) -> [ClientAction] {
        if unavailability != error { hub.send(.unavailable(error)) }
        unavailability = error
        // To the machine the links are gone. BlueZ can keep one up all the same: it must not outlive the attempt.
        _ = links.closeAll()
        return machine.radioUnavailable(RadioUnavailability(error), at: now)
    }

    private func available(at now: ContinuousClock.Instant) -> [ClientAction] {
        unavailability = nil
        return machine.radioAvailable(at: now)
    }

    /// Says `adapterReady` when the adapter has come (back), once.
    private func watchAdapter(after pause: Duration?) {
        adapterWatch?.cancel()
        adapterWatch = Task(executorPreference: radio.taskExecutor) { [radio, inbox] in
            if let pause { do { try await radio.clock.sleep(for: pause) } catch { return } }
            for await status in radio.adapterStatuses() where status.state == .poweredOn {
                inbox.post(.adapterReady)
                return
            }
        }
    }

    private func report(_ event: NearbyProtocol.ClientEvent) {
        switch event {
        case .candidate(let candidate):
            candidates.update(candidate)
            hub.send(.candidates(candidates.snapshot))
        case .candidateGone(let peer):
            candidates.remove(PeerIdentifier(peer.rawValue))
            hub.send(.candidates(candidates.snapshot))
        case .phase(_, let peer, .discovering):
            hub.send(.connected(PeerIdentifier(peer.rawValue)))
        case .phase(_, let peer, .writing):
            hub.send(.requesting(PeerIdentifier(peer.rawValue)))
        case .phase:
            break
        case .progress(_, let peer, let received):
            hub.send(.progress(PeerIdentifier(peer.rawValue), bytes: received))
        case .attemptFailed(let attempt, let peer, let failure, _):
            // Whatever there was of a link that failed or is down by itself is let go of, too.
            links.close(attempt)
            hub.send(.passedOver(PeerIdentifier(peer.rawValue), reason: failure.sentence))
        case .radioUnavailable, .radioAvailable:
            break
        }
    }
}
