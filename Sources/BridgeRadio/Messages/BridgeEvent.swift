// SPDX-License-Identifier: MIT

package import BluetoothLE

/// A write or read of one of the client's characteristics.
package struct AttributeRequest: Sendable, Hashable {
    package var connection: String
    package var attribute: LocalAttribute
    package var session: String
    /// Extension: what `respond` names. Absent: nobody waits for an answer.
    package var request: Int?
    package var offset: Int
    package var attMTU: Int?

    package init(
        connection: String,
        attribute: LocalAttribute,
        session: String,
        request: Int?,
        offset: Int,
        attMTU: Int?
    ) {
        self.connection = connection
        self.attribute = attribute
        self.session = session
        self.request = request
        self.offset = offset
        self.attMTU = attMTU
    }
}

/// What a command that failed was about.
package struct FailureContext: Sendable, Hashable {
    package var command: String?
    package var connection: String?
    package var characteristic: BluetoothUUID?

    package init(command: String? = nil, connection: String? = nil, characteristic: BluetoothUUID? = nil) {
        self.command = command
        self.connection = connection
        self.characteristic = characteristic
    }
}

/// What a bridge tells. Cases and fields that the protocol's file does not have are marked as extension; clients that
/// do not know them leave them out.
package enum BridgeEvent: Sendable, Hashable {
    /// Extension: `extensionVersion`, whether a token is wanted, and more of the status than its state.
    case bridgeReady(
        version: Int, platform: String, status: AdapterStatus, extensionVersion: Int?, wantsToken: Bool)
    case bluetoothStateChanged(AdapterStatus)
    /// Extension: manufacturer data and transmission power. An RSSI of 127 stands for none.
    case advertisementFound(address: String, Advertisement, rssi: Int)
    case scanFailed(BluetoothError)
    /// Extension: `attMTU`.
    case connected(connection: String, address: String, attMTU: Int?)
    case connectionFailed(address: String, BluetoothError)
    /// Extension: ids, whether a service is primary, and `attMTU`.
    case servicesDiscovered(connection: String, [RemoteService], attMTU: Int?)
    case characteristicRead(connection: String, characteristic: BluetoothUUID, value: [UInt8])
    /// Extension: the characteristic's id.
    case characteristicChanged(connection: String, characteristic: BluetoothUUID, id: String?, value: [UInt8])
    case writeAcknowledged(connection: String, characteristic: BluetoothUUID)
    /// Extension: `session`.
    case connectionRequestReceived(connection: String, central: String?, session: String)
    /// Extension: all but connection, UUIDs and value.
    case characteristicWriteReceived(AttributeRequest, value: [UInt8])
    /// Extension: the reason, and the session where it was a central.
    case disconnected(connection: String, error: String?, reason: DisconnectReason?, session: String)
    /// A command that failed, a line that was none, or why the bridge hangs up.
    case error(BluetoothError, FailureContext)

    /// Extension: a command is done that the protocol has no answer for. `isBroadcast` answers `hello`: whom a
    /// notification reaches.
    case done(attMTU: Int?, isBroadcast: Bool?)
    case advertisementLost(address: String)
    case serving(session: String, advertising: Bool, degraded: BluetoothError?)
    case interrupted(session: String, BluetoothError)
    case characteristicReadReceived(AttributeRequest)
    case subscriptionChanged(
        session: String, LocalAttribute, connection: String?, isSubscribed: Bool, attMTU: Int?)

    package var name: String {
        switch self {
        case .bridgeReady: "bridgeReady"
        case .bluetoothStateChanged: "bluetoothStateChanged"
        case .advertisementFound: "advertisementFound"
        case .scanFailed: "scanFailed"
        case .connected: "connected"
        case .connectionFailed: "connectionFailed"
        case .servicesDiscovered: "servicesDiscovered"
        case .characteristicRead: "characteristicRead"
        case .characteristicChanged: "characteristicChanged"
        case .writeAcknowledged: "writeAcknowledged"
        case .connectionRequestReceived: "connectionRequestReceived"
        case .characteristicWriteReceived: "characteristicWriteReceived"
        case .disconnected: "disconnected"
        case .error: "error"
        case .done: "done"
        case .advertisementLost: "advertisementLost"
        case .serving: "serving"
        case .interrupted: "interrupted"
        case .characteristicReadReceived: "characteristicReadReceived"
        case .subscriptionChanged: "subscriptionChanged"
        }
    }
}

/// An event with the id of the command that it answers.
package struct BridgeMessage: Sendable, Hashable {
    package var id: String?
    package var event: BridgeEvent

    package init(_ event: BridgeEvent, id: String? = nil) {
        self.event = event
        self.id = id
    }
}

extension FailureContext {
    package init(_ command: BridgeCommand) {
        self.init(command: command.name)
        switch command {
        case .readCharacteristic(let attribute), .writeCharacteristic(let attribute, _, _),
            .setNotify(let attribute, _):
            connection = attribute.connection
            characteristic = attribute.characteristic
        case .discoverServices(let connection, _, _), .disconnect(let connection):
            self.connection = connection
        case .sendNotification(let connection, let attribute, _, _):
            self.connection = connection
            characteristic = attribute.characteristic
        default:
            break
        }
    }
}
