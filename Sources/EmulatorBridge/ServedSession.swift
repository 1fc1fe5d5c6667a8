// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

/// What one client serves and advertises. Used by the client's session only, but for stopping it.
final class ServedSession: Sendable {
    struct State: Sendable {
        /// The connection ids that the client knows the centrals by.
        var connections: [PeerIdentifier: String] = [:]
        /// What a read is answered with where the client cannot be asked: the last notification.
        var values: [LocalCharacteristicID: [UInt8]] = [:]
        var reader: Task<Void, Never>?
    }

    let key: String
    let offer: Offer
    let session: any PeripheralSession
    let notifications = Lane()
    let state = Locked(State())

    init(_ offer: Offer, _ session: any PeripheralSession) {
        key = offer.session
        self.offer = offer
        self.session = session
    }

    func stop() async {
        notifications.close()
        await session.stop()
        await notifications.end()
        await state.withLock { $0.reader }?.value
    }

    func central(of connection: String) -> PeerIdentifier? {
        state.withLock { $0.connections.first { $0.value == connection }?.key }
    }

    /// The place of a characteristic that a message names.
    func place(of attribute: LocalAttribute) -> LocalCharacteristicID? {
        if let place = attribute.place { return self.attribute(at: place) == nil ? nil : place }
        for (serviceIndex, service) in offer.services.enumerated() where service.uuid == attribute.service {
            if let index = service.characteristics.firstIndex(where: { $0.uuid == attribute.characteristic }) {
                return LocalCharacteristicID(service: serviceIndex, characteristic: index)
            }
        }
        return nil
    }

    func attribute(at place: LocalCharacteristicID) -> LocalAttribute? {
        guard offer.services.indices.contains(place.service) else { return nil }
        let service = offer.services[place.service]
        guard service.characteristics.indices.contains(place.characteristic) else { return nil }
        return LocalAttribute(
            service: service.uuid,
            characteristic: service.characteristics[place.characteristic].uuid,
            place: place
        )
    }
}

extension Offer {
    /// What no two clients of one adapter may both have.
    var claimed: Set<BluetoothUUID> { Set(services.map(\.uuid)).union(advertisement?.serviceUUIDs ?? []) }
}
