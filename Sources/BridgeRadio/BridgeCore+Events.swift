// SPDX-License-Identifier: MIT

import BluetoothLE

extension BridgeCore {
    /// One line of the bridge's, in its order.
    func receive(_ line: [UInt8]) {
        let message: BridgeMessage
        do throws(BridgeMessageError) {
            message = try BridgeMessage(line: line)
        } catch {
            // A newer bridge may tell more than we know, and a wrong line is no reason to give up on those that follow.
            return failCall(error)
        }
        switch message.event {
        case .connected(let connection, let address, let attMTU):
            connected(message, connection, address, attMTU)
        case .disconnected(let connection, let error, let reason, let session):
            disconnected(connection, reason ?? (error == nil ? .local : .unknown), session)
        case .servicesDiscovered(let connection, let services, let attMTU):
            links[connection]?.note(services, attMTU)
            _ = finishCall(message)
        case .bridgeReady(_, _, let status, _, _), .bluetoothStateChanged(let status):
            note(status)
        case .advertisementFound(let address, let advertisement, let rssi):
            report(address, advertisement, rssi)
        case .advertisementLost(let address):
            for scan in scans.values { scan.lose(PeerIdentifier(address)) }
        case .characteristicRead(let connection, let characteristic, let value):
            // Without the extension a bridge may tell a notification like this, if the two come together.
            if !finishCall(message) { links[connection]?.receive(value, characteristic, id: nil) }
        case .characteristicChanged(let connection, let characteristic, let id, let value):
            links[connection]?.receive(value, characteristic, id: id)
        case .error(let error, let context):
            if !finishCall(message), context.command == nil { goodbye = error }
        case .scanFailed(let error):
            if !finishCall(message) { pauseScans(error) }
        case .connectionFailed, .writeAcknowledged, .done:
            _ = finishCall(message)
        case .connectionRequestReceived, .characteristicWriteReceived, .characteristicReadReceived,
            .subscriptionChanged, .serving, .interrupted:
            peripheralEvent(message.event)
        }
    }

    private func connected(_ message: BridgeMessage, _ connection: String, _ address: String, _ attMTU: Int?) {
        guard links.count < BridgeLimits.links, links[connection] == nil else { return }
        let link = BridgeLink(id: connection, peer: PeerIdentifier(address), attMTU: attMTU, core: self)
        links[connection] = link
        retain()
        guard !finishCall(message) else { return }
        // Whoever wanted it has given up: BlueZ would keep it for ever.
        Task { await link.disconnect() }
    }

    private func disconnected(_ connection: String, _ reason: DisconnectReason, _ session: String) {
        if links[connection] != nil {
            linkEnded(connection, reason)
        } else if let served = sessions[session] {
            served.centralLeft(connection)
        }
    }

    func linkEnded(_ connection: String, _ reason: DisconnectReason) {
        guard let link = links.removeValue(forKey: connection) else { return }
        for (id, call) in pending where call.connection == connection {
            // The answer to a `disconnect` is on its way.
            if case .disconnect = call.command { continue }
            pending[id] = nil
            call.finish(.failure(.linkLost))
        }
        link.end(reason)
        release()
    }
}
