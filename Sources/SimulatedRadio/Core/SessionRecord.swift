// SPDX-License-Identifier: MIT

import BluetoothLE

/// One `PeripheralSession`.
struct SessionRecord {
    struct Service {
        let handle: UInt16
        let service: LocalService
        /// The declarations' handles, in the order of the characteristics.
        let characteristics: [UInt16]
    }

    let id: SessionID
    let adapter: AdapterID
    let services: [Service]
    let request: AdvertisementRequest?
    let mailbox: Mailbox<PeripheralEvent>
    /// Whether the stack knows it: not while the adapter is away.
    var isRegistered = false
    /// Since when it has been advertising; `nil`: it is not, or not now.
    var advertisingSince: ContinuousClock.Instant?
    /// The next advertising event, if anybody listens.
    var advertisingTimer: MediumState.TimerID?

    var interval: Duration {
        let wanted = request?.interval?.lowerBound ?? Limits.defaultInterval
        return min(max(wanted, Limits.interval.lowerBound), Limits.interval.upperBound)
    }

    /// What goes on air.
    var advertisement: Advertisement {
        Advertisement(
            localName: request?.localName,
            serviceUUIDs: Set(request?.serviceUUIDs ?? []),
            serviceData: request?.serviceData ?? [:],
            manufacturerData: request?.manufacturerData ?? [:]
        )
    }

    func characteristic(at handle: UInt16) -> (id: LocalCharacteristicID, characteristic: LocalCharacteristic)? {
        for (serviceIndex, service) in services.enumerated() {
            if let index = service.characteristics.firstIndex(of: handle) {
                return (
                    LocalCharacteristicID(service: serviceIndex, characteristic: index),
                    service.service.characteristics[index]
                )
            }
        }
        return nil
    }

    func handle(of id: LocalCharacteristicID) -> UInt16? {
        guard services.indices.contains(id.service) else { return nil }
        let handles = services[id.service].characteristics
        return handles.indices.contains(id.characteristic) ? handles[id.characteristic] : nil
    }
}
