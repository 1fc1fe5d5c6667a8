// SPDX-License-Identifier: MIT

import BluetoothLE

/// A link with the tasks that live on it.
struct Link {
    let connection: any PeripheralConnection
    let peer: PeerIdentifier
    var writer: PacketWriter?
    var tasks: [Task<Void, Never>] = []
}

extension SessionCore {
    func connect(_ peer: PeerIdentifier) async throws(DeviceSessionError) {
        var scan: ScanRun?
        switch phase {
        case .idle, .failed: break
        case .scanning(let running): scan = running
        case .connecting, .connected, .disconnecting:
            throw DeviceSessionError(
                .busy, "the session has a connection already", advice: "Disconnect first.")
        case .tornDown: throw .tornDown
        }
        board.device = scan?.table.result(of: peer) ?? board.scanResults.first { $0.id == peer }
        // What was known is another device's, unless it is the same one again.
        board.facts = DeviceFacts()
        board.services = []
        run += 1
        let run = run
        let attempt = Task { [radio, configuration] () throws -> any PeripheralConnection in
            // The radio may need the scan to be over.
            if let scan { await self.end(scan) }
            try Task.checkCancellation()
            return try await radio.connect(to: peer, timeout: configuration.connectTimeout.bounded)
        }
        enter(.connecting(attempt), .connecting)
        perform(channel.close(.notReady))
        let result = await withTaskCancellationHandler {
            await attempt.result
        } onCancel: {
            attempt.cancel()
        }
        switch result {
        case .success(let connection):
            guard run == self.run else {
                await connection.disconnect()
                throw phaseError
            }
            if Task.isCancelled {
                await endOwn(connection)
                throw .cancelled
            }
            linkUp(connection, peer)
        case .failure(let error):
            guard run == self.run else { throw phaseError }
            self.run += 1
            let failure = Self.connectFailure(error)
            perform(channel.close(.notConnected))
            if failure.code == .cancelled { enter(.idle, .idle) } else { enter(.failed, .failed(failure)) }
            throw failure
        }
    }

    /// The caller has gone in the moment in which the link came.
    private func endOwn(_ connection: any PeripheralConnection) async {
        run += 1
        perform(channel.close(.notConnected))
        enter(.disconnecting, board.state)
        let closing = Task { await connection.disconnect() }
        self.closing = closing
        await closing.value
        if case .disconnecting = phase { enter(.idle, .idle) }
    }

    static func connectFailure(_ error: any Error) -> DeviceSessionError {
        guard let error = error as? BluetoothError else { return .cancelled }
        return DeviceSessionError(radio: error, otherwise: .connectionFailed)
    }

    func linkUp(_ connection: any PeripheralConnection, _ peer: PeerIdentifier) {
        run += 1
        let run = run
        lines?.reset()
        frames?.reset()
        channelFailure = nil
        perform(channel.close(.notReady))
        var link = Link(connection: connection, peer: peer)
        link.tasks.append(
            Task { [weak self] in
                let reason = await connection.disconnection()
                if Task.isCancelled { return }
                await self?.linkDown(reason, run: run)
            }
        )
        link.tasks.append(Task { [weak self] in await self?.setUp(connection, run: run) })
        enter(.connected(link), .connected)
    }

    /// The link has gone by itself.
    func linkDown(_ reason: DisconnectReason, run: Int) {
        guard run == self.run, case .connected(let link) = phase else { return }
        let error = DeviceSessionError(.disconnected, "the connection was lost: \(reason.sentence)")
        closeChannel(link, error)
        self.run += 1
        guard configuration.reconnection.attempts > 0 else {
            enter(.failed, .failed(error))
            return
        }
        perform(channel.close(.notReady))
        reconnect(link, after: error)
    }

    private func closeChannel(_ link: Link, _ error: DeviceSessionError) {
        for task in link.tasks { task.cancel() }
        board.isCommandReady = false
        board.isDeviceInfoReady = false
        perform(channel.close(error))
        log(.info, "\(error)")
    }

    // MARK: The end

    func disconnect() async {
        switch phase {
        case .idle, .scanning, .tornDown: return
        case .failed:
            perform(channel.close(.notConnected))
            enter(.idle, .idle)
        case .disconnecting:
            await closing?.value
        case .connecting(let attempt):
            run += 1
            let run = run
            attempt?.cancel()
            perform(channel.close(.closed))
            failGates(.closed)
            enter(.disconnecting, board.state)
            let closing = Task {
                if case .success(let connection)? = await attempt?.result { await connection.disconnect() }
            }
            self.closing = closing
            await closing.value
            settleDown(run)
        case .connected(let link):
            run += 1
            let run = run
            closeChannel(link, .closed)
            failGates(.closed)
            enter(.disconnecting, board.state)
            let closing = Task { await link.connection.disconnect() }
            self.closing = closing
            await closing.value
            settleDown(run)
        }
    }

    private func settleDown(_ run: Int) {
        guard run == self.run, case .disconnecting = phase else { return }
        perform(channel.close(.notConnected))
        enter(.idle, .idle)
    }

    /// For good. Returns when the radio has nothing of ours left; a second call waits for the first.
    func teardown() async {
        let before = phase
        if case .tornDown = before {
            await closing?.value
            return
        }
        run += 1
        let earlier = closing
        if case .connected(let link) = before { closeChannel(link, .tornDown) }
        perform(channel.close(.tornDown))
        failGates(.tornDown)
        let closing = Task {
            switch before {
            case .scanning(let scan):
                await self.end(scan)
            case .connecting(let attempt):
                attempt?.cancel()
                if case .success(let connection)? = await attempt?.result { await connection.disconnect() }
            case .connected(let link):
                await link.connection.disconnect()
            case .disconnecting:
                await earlier?.value
            case .idle, .failed, .tornDown:
                break
            }
        }
        self.closing = closing
        enter(.tornDown, .failed(.tornDown))
        hub.finish()
        resultStreams.finish()
        factStreams.finish()
        board.connectInterruptions.finish()
        await closing.value
    }
}

extension DisconnectReason {
    fileprivate var sentence: String {
        switch self {
        case .local: "this side ended it"
        case .remote: "the device ended it"
        case .timeout: "the device was no longer heard"
        case .adapterLost: "the Bluetooth adapter went away"
        case .unknown: "the radio does not say why"
        }
    }
}
