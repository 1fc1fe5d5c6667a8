// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

/// A client's scan, with what it was asked for.
struct RunningScan {
    let id: Int
    let scan: Scan
    let reader: Task<Void, Never>
    let allowsDuplicates: Bool
    var filter = DuplicateFilter()
}

extension ClientSession {
    func performScan(_ request: BridgeRequest) {
        // A start that still waits for its adapter is out of date with the next command.
        if !isExtended { scanOperation?.cancel() }
        let operation = Operation()
        if case .startScan(let services, let allowDuplicates) = request.command {
            scanOperation = operation
            enqueue(request, in: scanLane, as: operation) { session throws(BluetoothError) in
                try await session.startScan(request, services, allowDuplicates)
            }
        } else {
            enqueue(request, in: scanLane, as: operation) { session throws(BluetoothError) in
                await session.endScan()
                session.acknowledge(request.id)
            }
        }
    }

    private func startScan(
        _ request: BridgeRequest,
        _ services: [BluetoothUUID],
        _ allowDuplicates: Bool
    ) async throws(BluetoothError) {
        let radio = radio
        let new: Scan
        do throws(BluetoothError) {
            new = try await whenReady { () throws(BluetoothError) in
                try await radio.scan(for: ScanFilter(services: Set(services)))
            }
        } catch {
            // Called off by the client's next command, before there was anything to fail.
            if !isExtended, error.code == .cancelled { return }
            throw error
        }
        let id = take()
        let reader = Task { [weak self] in
            for await event in new.events { await self?.report(event, of: id) }
        }
        let old = scan
        scan = RunningScan(id: id, scan: new, reader: reader, allowsDuplicates: allowDuplicates)
        acknowledge(request.id)
        await Self.end(old)
    }

    func endScan() async {
        let old = scan
        scan = nil
        await Self.end(old)
    }

    private static func end(_ scan: RunningScan?) async {
        guard let scan else { return }
        await scan.scan.stop()
        await scan.reader.value
    }

    private func report(_ event: ScanEvent, of id: Int) {
        guard scan?.id == id else { return }
        switch event {
        case .discovered(let discovery):
            devices.note(discovery, keeping: linkedAddresses)
            if scan?.allowsDuplicates == false, scan?.filter.passes(discovery) == false { return }
            // 127 is HCI's word for “not available”, and the field has to be a number.
            send(
                .advertisementFound(
                    address: discovery.bridgeAddress, discovery.advertisement, rssi: discovery.rssi ?? 127),
                isDispensable: true
            )
        case .gone(let peer):
            scan?.filter.forget(peer)
            for address in devices.forget(peer) { tell(.advertisementLost(address: address)) }
        case .paused, .resumed:
            // The adapter's state says so.
            scan?.filter = DuplicateFilter()
        }
    }

    func adapterChanged() {
        guard status.state != .poweredOn else { return }
        forgotten.formUnion(devices.addresses)
        if forgotten.count > Limits.knownDevices { forgotten = devices.addresses }
        devices = KnownDevices()
    }
}

extension Discovery {
    /// What the protocol calls an address: what a client connects with.
    var bridgeAddress: String { address?.description ?? peer.rawValue }
}
