// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

/// Feeds the host machines of both profiles with what the radio, the app and the clock say, and performs their actions,
/// one at a time.
///
/// One task owns it and calls `run` once.
final class HostDriver {
    enum Input: Sendable {
        case radio(PeripheralEvent)
        case decided(JoinID, Admission)
        /// There is no room for one more, and the app was not asked.
        case turnedAway(JoinID)
        /// The radio has taken the frame, or refused it.
        case frameSent(TransmissionID)
        case passcodeChanged(Passcode)
        case timer
        case sessionEnded
        case cancelled
    }

    static let messageID = LocalCharacteristicID(service: 0, characteristic: 0)
    static let helloID = LocalCharacteristicID(service: 0, characteristic: 1)
    static let channelID = LocalCharacteristicID(service: 0, characteristic: 2)

    let configuration: NearbyHost.Configuration
    private let radio: any Peripheral
    let hub: Broadcast<HostEvent>
    /// Nil where every client is handed the configuration's payload.
    private let admit: (@Sendable (JoinRequest) async -> Admission)?
    private let inbox: Inbox<Input>
    private var machine: HostMachine
    /// Nil where only the basic profile is served.
    private var extended: ExtendedHostMachine?
    private var timer: DeadlineTimer
    private var decisions: [JoinID: Task<Void, Never>] = [:]
    var quota: HandoffQuota
    /// Once the host ends: until when it goes on telling whoever waits.
    private var farewell: ContinuousClock.Instant?

    init(
        configuration: NearbyHost.Configuration,
        radio: any Peripheral,
        hub: Broadcast<HostEvent>,
        inbox: Inbox<Input>,
        admit: (@Sendable (JoinRequest) async -> Admission)?
    ) throws(NearbyError) {
        self.configuration = configuration
        self.radio = radio
        self.hub = hub
        self.inbox = inbox
        self.admit = admit
        let profiles = try configuration.profiles()
        do throws(EnvelopeError) {
            machine = try HostMachine(configuration.basicConfiguration(profiles))
            if profiles.servesExtended {
                extended = try ExtendedHostMachine(configuration.extendedConfiguration(profiles))
            }
        } catch {
            throw NearbyError(envelope: error, of: "handoff")
        }
        quota = HandoffQuota(limit: configuration.maximumHandoffs)
        timer = DeadlineTimer(clock: radio.clock, executor: radio.taskExecutor) { [inbox] in inbox.post(.timer) }
    }

    /// Serves until the quota is used up; see `NearbyHost.run`.
    func run() async throws(NearbyError) {
        let session = try await startSession()
        let pump = Task(executorPreference: radio.taskExecutor) { [inbox] in
            for await event in session.events { await inbox.send(.radio(event)) }
            inbox.post(.sessionEnded)
        }
        let result = await withTaskCancellationHandler {
            await serve(session)
        } onCancel: { [inbox] in
            inbox.post(.cancelled)
        }
        inbox.close()
        timer.set(nil)
        for decision in decisions.values { decision.cancel() }
        // A task of its own: this one may be cancelled, and the radio must be told all the same.
        await Task(executorPreference: radio.taskExecutor) { await session.stop() }.value
        pump.cancel()
        try result.get()
    }

    private func startSession() async throws(NearbyError) -> any PeripheralSession {
        var policy = configuration.whenUnavailable
        let began = radio.clock.now
        while true {
            let gate = AdapterGate(radio: radio, policy: policy) { [hub] in hub.send(.unavailable($0)) }
            try await gate.open()
            do throws(BluetoothError) {
                return try await radio.serve(
                    [LocalService(ServiceUUIDs.service, characteristics: characteristics)],
                    advertising: AdvertisementRequest(
                        localName: configuration.name,
                        serviceUUIDs: [ServiceUUIDs.service]
                    )
                )
            } catch {
                // The adapter went away between the gate and here: back to the gate, with what patience is left.
                guard error.isUnavailability else { throw NearbyError(error) }
                hub.send(.unavailable(error))
                if case .fail(let patience) = configuration.whenUnavailable {
                    let left = patience.bounded - (radio.clock.now - began)
                    guard left > .zero else { throw NearbyError(error) }
                    policy = .fail(after: left)
                }
                do { try await radio.clock.sleep(for: Limits.tryAgain) } catch { throw .cancelled }
            }
        }
    }

    /// In the order of their ids.
    private var characteristics: [LocalCharacteristic] {
        let message = LocalCharacteristic(ServiceUUIDs.message, [.write, .notify])
        guard extended != nil else { return [message] }
        return [
            message,
            LocalCharacteristic(ServiceUUIDs.hello, [.read]),
            LocalCharacteristic(ServiceUUIDs.channel, [.write, .notify]),
        ]
    }

    private func serve(_ session: any PeripheralSession) async -> Result<Void, NearbyError> {
        while let input = await inbox.next() {
            let now = radio.clock.now
            switch input {
            case .radio(let event):
                await react(to: event, on: session, at: now)
            case .decided(let id, let admission):
                // Not before: a decision that was called off counts until the app has let go of it.
                decisions[id] = nil
                await decided(id, quota.decide(id, admission), isApps: true, on: session, at: now)
            case .turnedAway(let id):
                let busy = AdmissionDecision.reject(.busy, message: "The host is serving another client.")
                await decided(id, busy, isApps: false, on: session, at: now)
            case .frameSent(let id):
                await perform(extended?.frameSent(id, at: now), on: session)
            case .passcodeChanged(let passcode):
                await perform(extended?.changePasscode(to: passcode, at: now), on: session)
            case .timer:
                timer.fired()
                await perform(machine.timerFired(at: now), on: session)
                await perform(extended?.timerFired(at: now), on: session)
            case .sessionEnded:
                return .failure(NearbyError(.internalFailure, "the radio ended the session by itself"))
            case .cancelled:
                farewell = farewell ?? now + Limits.farewell
                await perform(machine.stop(at: now), on: session)
                await perform(extended?.stop(at: now), on: session)
            }
            if let farewell, extended?.isQuiet ?? true || farewell <= now { return .failure(.cancelled) }
            if quota.isUsedUp { return .success(()) }
            timer.set([machine.nextDeadline, extended?.nextDeadline, farewell].compactMap { $0 }.min())
        }
        return .failure(.cancelled)
    }

    private func react(
        to event: PeripheralEvent, on session: any PeripheralSession, at now: ContinuousClock.Instant
    ) async {
        switch event {
        case .serving(true, let degraded):
            hub.send(.serving(sessionId: configuration.sessionId, degraded: degraded))
        case .serving(false, let reason):
            // Who is connected is served all the same; nobody else can find the host until the radio has found room.
            hub.send(.unavailable(reason ?? BluetoothError(.advertisingFailed, "the radio does not advertise")))
        case .interrupted(let error):
            hub.send(.unavailable(error))
            await perform(machine.radioReset(at: now), on: session)
            await perform(extended?.radioReset(at: now), on: session)
        case .connected(let central):
            await perform(machine.centralConnected(PeerID(central.rawValue), at: now), on: session)
            await perform(extended?.centralConnected(PeerID(central.rawValue), at: now), on: session)
        case .disconnected(let central):
            await perform(machine.centralDisconnected(PeerID(central.rawValue), at: now), on: session)
            await perform(extended?.centralDisconnected(PeerID(central.rawValue), at: now), on: session)
        case .subscribed(let id, let central, let mtu):
            let peer = central.map { PeerID($0.rawValue) }
            if id == Self.messageID { await perform(machine.subscribed(peer, mtu: mtu, at: now), on: session) }
            if id == Self.channelID { await perform(extended?.subscribed(peer, mtu: mtu, at: now), on: session) }
        case .unsubscribed(let id, let central):
            let peer = central.map { PeerID($0.rawValue) }
            if id == Self.messageID { await perform(machine.unsubscribed(peer, at: now), on: session) }
            if id == Self.channelID { await perform(extended?.unsubscribed(peer, at: now), on: session) }
        case .write(let request):
            await react(to: request, on: session, at: now)
        case .read(let request):
            let id = NearbyProtocol.RequestID(request.id.rawValue)
            guard request.characteristic == Self.helloID, extended != nil else {
                // Nothing else has the read property; a radio that lets one through gets its answer all the same.
                return await refuse(id, ATTErrorCode(rawValue: 0x02), on: session)
            }
            let actions = extended?.readHello(
                id, from: PeerID(request.central.rawValue), offset: request.offset, mtu: request.attMTU, at: now)
            await perform(actions, on: session)
        }
    }

    private func react(
        to request: WriteRequest, on session: any PeripheralSession, at now: ContinuousClock.Instant
    ) async {
        let (id, peer) = (NearbyProtocol.RequestID(request.id.rawValue), PeerID(request.central.rawValue))
        let (value, offset, mtu) = (request.value, request.offset, request.attMTU)
        switch request.characteristic {
        case Self.messageID:
            await perform(machine.write(id, from: peer, value, offset: offset, mtu: mtu, at: now), on: session)
        case Self.channelID where extended != nil:
            let actions = extended?.write(
                id, from: peer, value, offset: offset, mtu: mtu, at: now, mayRepeat: quota.mayRepeat)
            await perform(actions, on: session)
        default:
            await refuse(id, ATTErrorCode(rawValue: 0x03), on: session)
        }
    }

    private func decided(
        _ id: JoinID, _ decision: AdmissionDecision, isApps: Bool, on session: any PeripheralSession,
        at now: ContinuousClock.Instant
    ) async {
        // Each machine knows its own ids and ignores the other's.
        await perform(machine.admissionDecided(id, decision, at: now), on: session)
        await perform(extended?.admissionDecided(id, decision, isApps: isApps, at: now), on: session)
    }

    // MARK: Performing

    private func accept(_ request: NearbyProtocol.RequestID, on session: any PeripheralSession) async {
        await session.respond(to: BluetoothLE.RequestID(rawValue: request.rawValue), with: .accept)
    }

    private func refuse(
        _ request: NearbyProtocol.RequestID, _ code: ATTErrorCode, on session: any PeripheralSession
    ) async {
        let response = RequestResponse.refuse(ATTError(rawValue: code.rawValue))
        await session.respond(to: BluetoothLE.RequestID(rawValue: request.rawValue), with: response)
    }

    private func perform(_ actions: [HostAction], on session: any PeripheralSession) async {
        for action in actions {
            switch action {
            case .acknowledge(let request):
                await accept(request, on: session)
            case .refuse(let request, let code):
                await refuse(request, code, on: session)
            case .decide(let request):
                decide(request, .plaintext)
            case .cancelDecision(let id):
                cancelDecision(id)
            case .notify(let bytes, let peer):
                // It fails where nobody is subscribed (yet): the machine answers a late subscriber again. A radio that
                // went away says so with an event of its own.
                try? await session.notify(bytes, on: Self.messageID, to: PeerIdentifier(peer.rawValue))
            case .report(let event):
                report(event)
            }
        }
    }

    private func perform(_ actions: [ExtendedHostAction]?, on session: any PeripheralSession) async {
        for action in actions ?? [] {
            switch action {
            case .answer(let request, let bytes):
                await session.respond(to: BluetoothLE.RequestID(rawValue: request.rawValue), with: .value(bytes))
            case .acknowledge(let request):
                await accept(request, on: session)
            case .refuse(let request, let code):
                await refuse(request, code, on: session)
            case .decide(let request):
                decide(request, configuration.security.hasPasscode ? .authenticated : .sealed)
            case .cancelDecision(let id):
                cancelDecision(id)
            case .notify(let transmission, let bytes, let peer):
                // As above. The next frame is asked for through the inbox: what has arrived meanwhile comes first.
                try? await session.notify(bytes, on: Self.channelID, to: PeerIdentifier(peer.rawValue))
                inbox.post(.frameSent(transmission))
            case .report(let event):
                report(event)
            }
        }
    }

    private func cancelDecision(_ id: JoinID) {
        decisions[id]?.cancel()
        quota.ended(id)
    }

    private func decide(_ request: NearbyProtocol.JoinRequest, _ security: MessageSecurity) {
        let join = JoinRequest(
            client: PeerIdentifier(request.peer.rawValue),
            sessionId: request.sessionId,
            payload: request.payload.map { NearbyPayload($0) },
            security: security
        )
        guard quota.admits(request.id, besides: decisions.count) else {
            inbox.post(.turnedAway(request.id))
            return
        }
        hub.send(.joinRequested(join))
        guard let admit else {
            inbox.post(.decided(request.id, .handoff(configuration.payload)))
            return
        }
        // Not on the radio's executor: what an app does here may take time.
        decisions[request.id] = Task { [inbox] in
            let admission = await admit(join)
            inbox.post(.decided(request.id, admission))
        }
    }
}
