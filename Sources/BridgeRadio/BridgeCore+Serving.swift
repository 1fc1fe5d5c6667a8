// SPDX-License-Identifier: MIT

import BluetoothLE

extension BridgeCore {
    func serve(
        _ services: [LocalService],
        advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> BridgeSession {
        guard services.count <= BridgeLimits.services,
            services.allSatisfy({ $0.characteristics.count <= BridgeLimits.characteristics })
        else { throw BluetoothError(.limitExceeded, "there are too many services or characteristics") }
        if let error = advertisement.flatMap({ AdvertisementBudget($0).error }) { throw error }
        retain()
        var opened: BridgeSession?
        do throws(BluetoothError) {
            let wire = try await wire()
            if status.state != .poweredOn, status.state != .unknown { throw status.bridgeError }
            let session = try open(services, advertisement, on: wire)
            opened = session
            try await call(.advertise(session.told))
            if !wire.isExtended { session.serving(advertising: true, degraded: nil) }
            return session
        } catch {
            if let opened {
                // Where the answer is missing, there may be something all the same.
                if case .connected(let wire) = phase {
                    try? send(BridgeRequest(.stopAdvertise(session: opened.key)), on: wire)
                }
                sessions[opened.key] = nil
            }
            release()
            throw error
        }
    }

    private func open(
        _ services: [LocalService],
        _ advertisement: AdvertisementRequest?,
        on wire: Wire
    ) throws(BluetoothError) -> BridgeSession {
        if !wire.isExtended {
            guard sessions.isEmpty else {
                throw BluetoothError(.busy, "this bridge serves one session at a time")
            }
            guard advertisement != nil else {
                throw BluetoothError(.notSupported, "this bridge cannot serve without advertising")
            }
        }
        let key = wire.isExtended ? "session-\(newNumber())" : ""
        let offer = Offer(
            services: services, advertisement: advertisement, session: key, isDetailed: wire.isExtended)
        let session = BridgeSession(offer, core: self)
        sessions[key] = session
        return session
    }

    func endSession(_ session: BridgeSession) async {
        guard sessions[session.key] === session else { return }
        if case .connected = phase { _ = try? await call(.stopAdvertise(session: session.key)) }
        guard sessions.removeValue(forKey: session.key) != nil else { return }
        release()
    }

    func respond(_ number: Int, _ response: RequestResponse) {
        guard case .connected(let wire) = phase else { return }
        try? send(BridgeRequest(.respond(request: number, response)), on: wire)
    }

    func notify(
        _ value: [UInt8],
        _ attribute: LocalAttribute,
        to central: String?,
        of session: BridgeSession
    ) async throws(BluetoothError) {
        guard case .connected(let wire) = phase else {
            throw BluetoothError(.resetting, "the connection to the bridge is gone")
        }
        if central != nil || wire.isExtended {
            try await call(
                .sendNotification(connection: central, attribute, value: value, session: session.key),
                isCancellable: false)
            return
        }
        let centrals = session.centrals
        guard !centrals.isEmpty else { throw BluetoothError(.notConnected, "nobody is connected") }
        for central in centrals {
            try await call(
                .sendNotification(connection: central, attribute, value: value, session: session.key),
                isCancellable: false)
        }
    }

    // MARK: - What the bridge tells

    func peripheralEvent(_ event: BridgeEvent) {
        switch event {
        case .connectionRequestReceived(let connection, _, let key):
            guard let session = sessions[key] else { return }
            session.centralCame(connection)
            if case .connected(let wire) = phase, !wire.isExtended { session.assumeSubscription(connection) }
        case .characteristicWriteReceived(let request, let value):
            sessions[request.session]?.write(request, value)
        case .characteristicReadReceived(let request):
            sessions[request.session]?.read(request)
        case .subscriptionChanged(let key, let attribute, let connection, let isSubscribed, let attMTU):
            sessions[key]?.subscription(attribute, connection, isSubscribed, attMTU)
        case .serving(let key, let advertising, let degraded):
            sessions[key]?.serving(advertising: advertising, degraded: degraded)
        case .interrupted(let key, let error):
            sessions[key]?.interrupt(error)
        default:
            break
        }
    }

    // MARK: - Bad moments

    /// The connection is gone, and with it what the bridge served.
    func interruptSessions(_ error: BluetoothError) {
        for session in sessions.values { session.interrupt(error) }
    }

    /// A bridge of the extension tells of its sessions; of another's only the adapter's state is known.
    func interruptPlainSessions(_ error: BluetoothError) {
        if case .connected(let wire) = phase, !wire.isExtended { interruptSessions(error) }
    }

    /// A new connection knows nothing of the old one's sessions.
    func resumeSessions() {
        for session in sessions.values {
            Task { await self.serveAgain(session) }
        }
    }

    func resumePlainSessions() {
        if case .connected(let wire) = phase, !wire.isExtended { resumeSessions() }
    }

    private func serveAgain(_ session: BridgeSession) async {
        var pause = GrowingPause(BridgeLimits.reconnect)
        while sessions[session.key] === session, !session.isStopped, case .connected(let wire) = phase {
            // What served one session at a time may speak the extension now, or the other way round.
            guard wire.isExtended == session.offer.isDetailed else { return }
            do throws(BluetoothError) {
                try await call(.advertise(session.told))
                if !wire.isExtended { session.serving(advertising: true, degraded: nil) }
                return
            } catch {
                session.interrupt(error)
            }
            try? await Task.sleep(for: pause.next())
        }
    }
}
