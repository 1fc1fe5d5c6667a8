// SPDX-License-Identifier: MIT

package import BluetoothLE

/// One characteristic of a connected peripheral, as a command names it.
package struct RemoteAttribute: Sendable, Hashable {
    package var connection: String
    package var service: BluetoothUUID
    package var characteristic: BluetoothUUID
    /// Extension: `characteristicId` of `servicesDiscovered`. Without it, the first of these UUIDs is meant.
    package var id: String?

    package init(
        connection: String,
        service: BluetoothUUID,
        characteristic: BluetoothUUID,
        id: String? = nil
    ) {
        self.connection = connection
        self.service = service
        self.characteristic = characteristic
        self.id = id
    }
}

/// One characteristic of what a client serves, as messages name it.
package struct LocalAttribute: Sendable, Hashable {
    package var service: BluetoothUUID
    package var characteristic: BluetoothUUID
    /// Extension: the positions in `advertise`. Without them, the first of these UUIDs is meant.
    package var place: LocalCharacteristicID?

    package init(
        service: BluetoothUUID,
        characteristic: BluetoothUUID,
        place: LocalCharacteristicID? = nil
    ) {
        self.service = service
        self.characteristic = characteristic
        self.place = place
    }
}

/// What a client wants to serve and advertise.
package struct Offer: Sendable, Hashable {
    package var services: [LocalService]
    /// `nil` serves without advertising, which only the extension can say.
    package var advertisement: AdvertisementRequest?
    /// Extension: a client may have several. Empty in the protocol's own form, where a second replaces the first.
    package var session: String
    /// `services` goes along as a list of its own, which a bridge without the extension does not read.
    package var isDetailed: Bool

    package init(
        services: [LocalService],
        advertisement: AdvertisementRequest?,
        session: String = "",
        isDetailed: Bool = false
    ) {
        self.services = services
        self.advertisement = advertisement
        self.session = session
        self.isDetailed = isDetailed
    }
}

/// What a client asks of a bridge. Cases and fields that the protocol's file does not have are marked as extension.
package enum BridgeCommand: Sendable, Hashable {
    /// Without services every device is reported. `allowDuplicates` reports each advertisement.
    case startScan(services: [BluetoothUUID], allowDuplicates: Bool)
    case stopScan
    /// Extension: `timeout`.
    case connect(address: String, timeout: Duration?)
    /// With services only those are told. Extension: a characteristic that is waited for.
    case discoverServices(connection: String, services: [BluetoothUUID], awaiting: BluetoothUUID?)
    case readCharacteristic(RemoteAttribute)
    case writeCharacteristic(RemoteAttribute, value: [UInt8], withResponse: Bool)
    case setNotify(RemoteAttribute, enable: Bool)
    case advertise(Offer)
    case stopAdvertise(session: String)
    /// Extension: without a connection all subscribers are meant.
    case sendNotification(connection: String?, LocalAttribute, value: [UInt8], session: String)
    case disconnect(connection: String)
    /// Extension: asks for it, and shows the token where the bridge wants one.
    case hello(version: Int, token: String?)
    /// Extension: answers a request of a central.
    case respond(request: Int, RequestResponse)
    /// Extension: calls off the command of that id.
    case cancel(target: String)

    package var name: String {
        switch self {
        case .startScan: "startScan"
        case .stopScan: "stopScan"
        case .connect: "connect"
        case .discoverServices: "discoverServices"
        case .readCharacteristic: "readCharacteristic"
        case .writeCharacteristic: "writeCharacteristic"
        case .setNotify: "setNotify"
        case .advertise: "advertise"
        case .stopAdvertise: "stopAdvertise"
        case .sendNotification: "sendNotification"
        case .disconnect: "disconnect"
        case .hello: "hello"
        case .respond: "respond"
        case .cancel: "cancel"
        }
    }
}

/// A command with the id that its answers echo.
package struct BridgeRequest: Sendable, Hashable {
    package var id: String?
    package var command: BridgeCommand

    package init(_ command: BridgeCommand, id: String? = nil) {
        self.command = command
        self.id = id
    }
}
