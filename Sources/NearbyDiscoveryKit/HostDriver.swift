// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyProtocol

/// Feeds a `HostMachine` with what the radio, the app and the clock say, and performs its actions, one at a time.
///
/// One task owns it and calls `run` once.
final class HostDriver {
    private enum Input: Sendable {
        case radio(PeripheralEvent)
        case decided(JoinID, Admission)
        case timer
        case sessionEnded
        case cancelled
    }

    private static let messageID = LocalCharacteristicID(service: 0, characteristic: 0)

    private let configuration: NearbyHost.Configuration
    private let radio: any Peripheral
    private let hub: EventHub<HostEvent>
    private let admit: @Sendable (JoinRequest) async -> Admission
    private let inbox = Inbox<Input>()
    private var machine: HostMachine
    private var timer: DeadlineTimer
    private var decisions: [JoinID: Task<Void, Never>] = [:]
    private var quota: HandoffQuota

    init(
        configuration: NearbyHost.Configuration,
        radio: any Peripheral,
        hub: EventHub<HostEvent>,
        admit: @escaping @Sendable (JoinRequest) async -> Admission
    ) throws(NearbyError) {
        self.configuration = configuration
        self.radio = radio
        self.hub = hub
        self.admit = admit
        do throws(EnvelopeError) {
            machine = try HostMachine(configuration.machineConfiguration)
        } catch {
            throw NearbyError(envelope: error, of: "handoff")
        }
        quota = HandoffQuota(limit: configuration.maximumHandoffs)
        timer = DeadlineTimer(clock: radio.clock) { [inbox] in inbox.post(.timer) }
    }

    /// Serves until the quota is used up; see `NearbyHost.run`.
    func run() async throws(NearbyError) {
        let session = try await startSession()
        let pump = Task { [inbox] in
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
        await Task { await session.stop() }.value
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
                let message = LocalCharacteristic(ServiceUUIDs.message, [.write, .notify])
                return try await radio.serve(
                    [LocalService(ServiceUUIDs.service, characteristics: [message])],
                    advertising: AdvertisementRequest(
                        localName: configuration.name,
                        serviceUUIDs: [ServiceUUIDs.service]
                    )
                )
            } catch {
                // The adapter went away between the gate and here: back to the gate, with what patience is left.
                guard error.isUnavailability, error.code != .unauthorized else { throw NearbyError(error) }
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

    private func serve(_ session: any PeripheralSession) async -> Result<Void, NearbyError> {
        while let input = await inbox.next() {
            let now = radio.clock.now
            switch input {
            case .radio(let event):
                await perform(react(to: event, at: now), on: session)
            case .decided(let id, let admission):
                // Not before: a decision that was called off counts until the app has let go of it.
                decisions[id] = nil
                await perform(machine.admissionDecided(id, quota.decide(id, admission), at: now), on: session)
            case .timer:
                timer.fired()
                await perform(machine.timerFired(at: now), on: session)
            case .sessionEnded:
                return .failure(NearbyError(.internalFailure, "the radio ended the session by itself"))
            case .cancelled:
                await perform(machine.stop(at: now), on: session)
                return .failure(.cancelled)
            }
            timer.set(machine.nextDeadline)
            if quota.isUsedUp { return .success(()) }
        }
        return .failure(.cancelled)
    }

    private func react(to event: PeripheralEvent, at now: ContinuousClock.Instant) -> [HostAction] {
        switch event {
        case .serving(_, let degraded):
            hub.send(.serving(sessionId: configuration.sessionId, degraded: degraded))
            return []
        case .interrupted(let error):
            hub.send(.unavailable(error))
            return machine.radioReset(at: now)
        case .connected(let central):
            return machine.centralConnected(PeerID(central.rawValue), at: now)
        case .disconnected(let central):
            return machine.centralDisconnected(PeerID(central.rawValue), at: now)
        case .subscribed(let id, let central, let mtu):
            guard id == Self.messageID else { return [] }
            return machine.subscribed(central.map { PeerID($0.rawValue) }, mtu: mtu, at: now)
        case .unsubscribed(let id, let central):
            guard id == Self.messageID else { return [] }
            return machine.unsubscribed(central.map { PeerID($0.rawValue) }, at: now)
        case .write(let request):
            return machine.write(
                NearbyProtocol.RequestID(request.id.rawValue),
                from: PeerID(request.central.rawValue),
                request.value,
                offset: request.offset,
                mtu: request.attMTU,
                at: now
            )
        case .read(let request):
            // Nothing that we serve has the read property; a radio that lets one through gets its answer all the same.
            return [.refuse(NearbyProtocol.RequestID(request.id.rawValue), ATTErrorCode(rawValue: 0x02))]
        }
    }

    private func perform(_ actions: [HostAction], on session: any PeripheralSession) async {
        for action in actions {
            switch action {
            case .acknowledge(let request):
                await session.respond(to: BluetoothLE.RequestID(rawValue: request.rawValue), with: .accept)
            case .refuse(let request, let code):
                await session.respond(
                    to: BluetoothLE.RequestID(rawValue: request.rawValue),
                    with: .refuse(ATTError(rawValue: code.rawValue))
                )
            case .decide(let request):
                decide(request)
            case .cancelDecision(let id):
                decisions[id]?.cancel()
                quota.ended(id)
            case .notify(let bytes, let peer):
                // It fails where nobody is subscribed (yet): the machine answers a late subscriber again. A radio that
                // went away says so with an event of its own.
                try? await session.notify(bytes, on: Self.messageID, to: PeerIdentifier(peer.rawValue))
            case .report(let event):
                report(event)
            }
        }
    }

    private func decide(_ request: NearbyProtocol.JoinRequest) {
        let join = JoinRequest(
            client: PeerIdentifier(request.peer.rawValue),
            sessionId: request.sessionId,
            payload: request.payload.map { NearbyPayload($0) }
        )
        guard quota.admits(request.id), decisions.count < Limits.admissions else {
            inbox.post(.decided(request.id, .reject(.busy, message: "The host is serving another client.")))
            return
        }
        hub.send(.joinRequested(join))
        decisions[request.id] = Task { [admit, inbox] in
            let admission = await admit(join)
            inbox.post(.decided(request.id, admission))
        }
    }

    private func report(_ event: NearbyProtocol.HostEvent) {
        quota.observe(event)
        switch event {
        case .requested, .answeredAgain:
            break
        case .handedOff(_, let peer):
            hub.send(.handedOff(client: PeerIdentifier(peer.rawValue)))
        case .delivered(_, let peer, _):
            hub.send(.delivered(client: PeerIdentifier(peer.rawValue)))
        case .rejected(_, let peer, let reason, let message):
            hub.send(.rejected(client: PeerIdentifier(peer.rawValue), reason: reason, message: message))
        case .failed(_, let peer, let failure):
            guard let error = NearbyError(failure) else { break }
            hub.send(.failed(client: PeerIdentifier(peer.rawValue), error))
        }
    }
}
