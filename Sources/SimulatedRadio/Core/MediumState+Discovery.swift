// SPDX-License-Identifier: MIT

import BluetoothLE

extension MediumState {
    mutating func discover(
        _ id: LinkID,
        awaiting awaited: BluetoothUUID?,
        _ promise: Promise<[RemoteService]>
    ) throws(BluetoothError) -> OperationID {
        let link = try requireLink(id)
        guard link.discoveries.count < Limits.queuedTransactions else { throw .tooManyOperations }
        let peripheral = link.peripheral
        var delay = conditions.discoveryTime
        if let extra = adapters[peripheral]?.takeFault({ fault -> Duration? in
            if case .nextDiscoveryTakes(let extra) = fault { extra } else { nil }
        }) {
            delay += extra
        }
        if let (uuid, period) = adapters[peripheral]?.takeFault({ fault -> (BluetoothUUID, Duration)? in
            if case .nextDiscoveryLacks(let uuid, for: let period) = fault { (uuid, period) } else { nil }
        }) {
            adapters[peripheral]?.hidden[uuid] = now.advanced(by: delay + period)
            schedule(after: delay + period) { state in
                state.adapters[peripheral]?.hidden[uuid] = nil
                state.databaseChanged(peripheral)
            }
        }
        let operation = OperationID(rawValue: nextNumber())
        links[id]?.discoveries[operation] = DiscoveryRecord(awaited: awaited, promise: promise)
        after(delay) { $0.resolve(operation, on: id) }
        return operation
    }

    private mutating func resolve(_ operation: OperationID, on id: LinkID) {
        guard let link = links[id], let discovery = link.discoveries[operation] else { return }
        let services = services(of: link.peripheral)
        if let awaited = discovery.awaited, !services.contains(where: { $0.contains(awaited) }) {
            let timer = schedule(after: Limits.awaitedCharacteristic) { $0.finishDiscovery(operation, on: id) }
            links[id]?.discoveries[operation]?.isAwaiting = true
            links[id]?.discoveries[operation]?.timer = timer
        } else {
            finishDiscovery(operation, on: id)
        }
    }

    private mutating func finishDiscovery(_ operation: OperationID, on id: LinkID) {
        guard let link = links[id], !link.isDeaf,
            var discovery = links[id]?.discoveries.removeValue(forKey: operation)
        else { return }
        cancel(&discovery.timer)
        complete(discovery.promise, .success(services(of: link.peripheral)))
    }

    /// Services have appeared: who waits for one of their characteristics looks again.
    mutating func databaseChanged(_ peripheral: AdapterID) {
        let services = services(of: peripheral)
        for id in linkIDs(of: peripheral) where links[id]?.peripheral == peripheral {
            for operation in links[id]?.discoveries.keys.sorted() ?? [] {
                guard let discovery = links[id]?.discoveries[operation], discovery.isAwaiting,
                    let awaited = discovery.awaited, services.contains(where: { $0.contains(awaited) })
                else { continue }
                finishDiscovery(operation, on: id)
            }
        }
    }

    private func services(of id: AdapterID) -> [RemoteService] {
        let hidden = adapters[id]?.hidden ?? [:]
        var result: [RemoteService] = []
        for session in sessionIDs(of: id) {
            guard let session = sessions[session], session.isRegistered else { continue }
            for record in session.services {
                var characteristics: [RemoteCharacteristic] = []
                for (handle, characteristic) in zip(record.characteristics, record.service.characteristics)
                where hidden[characteristic.uuid] == nil {
                    characteristics.append(
                        RemoteCharacteristic(
                            id: Self.name(of: handle),
                            uuid: characteristic.uuid,
                            properties: characteristic.properties
                        )
                    )
                }
                result.append(
                    RemoteService(
                        id: Self.name(of: record.handle),
                        uuid: record.service.uuid,
                        isPrimary: record.service.isPrimary,
                        characteristics: characteristics
                    )
                )
            }
        }
        return result
    }

    /// Four hexadecimal digits, as in BlueZ's object paths.
    static func name(of handle: UInt16) -> String {
        let digits = String(handle, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}

extension RemoteService {
    fileprivate func contains(_ uuid: BluetoothUUID) -> Bool {
        characteristics.contains { $0.uuid == uuid }
    }
}

extension BluetoothError {
    static let tooManyOperations = BluetoothError(
        .limitExceeded, "\(Limits.queuedTransactions) operations wait on this link")
}
