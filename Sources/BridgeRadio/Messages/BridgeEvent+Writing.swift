// SPDX-License-Identifier: MIT

import BluetoothLE
import JSON

extension BridgeMessage {
    /// The message as one line, with its end.
    ///
    /// - Parameter isExtended: Whether the client has asked for the extension.
    package func line(isExtended: Bool = true) -> [UInt8] {
        var object: JSONObject = ["event": .string(event.name)]
        object.put("id", id)
        event.put(into: &object)
        return (isExtended ? object : PlainForm.reduce(object)).encoded() + [UInt8(ascii: "\n")]
    }
}

extension BridgeEvent {
    fileprivate func put(into object: inout JSONObject) {
        switch self {
        case .bridgeReady(let version, let platform, let status, let extensionVersion, let wantsToken):
            object.put("protocolVersion", version)
            object.put("platform", platform)
            status.put(into: &object)
            object.put("extension", extensionVersion)
            if wantsToken { object["tokenRequired"] = true }
        case .bluetoothStateChanged(let status):
            status.put(into: &object)
        case .advertisementFound(let address, let advertisement, let rssi):
            object.put("address", address)
            object.put("localName", advertisement.localName)
            object.put("rssi", rssi)
            object.put("serviceUuids", advertisement.serviceUUIDs.sorted())
            object.put("serviceData", advertisement.serviceData)
            object.put(manufacturerData: advertisement.manufacturerData)
            object.put("txPower", advertisement.txPower)
        case .scanFailed(let error):
            error.put(into: &object)
        case .connected(let connection, let address, let attMTU):
            object.put("connectionId", connection)
            object.put("address", address)
            object.put("attMtu", attMTU)
        case .connectionFailed(let address, let error):
            object.put("address", address)
            error.put(into: &object)
        case .servicesDiscovered(let connection, let services, let attMTU):
            object.put("connectionId", connection)
            object["services"] = .array(services.map { .object($0.fields) })
            object.put("attMtu", attMTU)
        case .characteristicRead(let connection, let characteristic, let value):
            object.put("connectionId", connection)
            object.put("characteristicUuid", characteristic.description)
            object.put("value", bytes: value)
        case .characteristicChanged(let connection, let characteristic, let id, let value):
            object.put("connectionId", connection)
            object.put("characteristicUuid", characteristic.description)
            object.put("characteristicId", id)
            object.put("value", bytes: value)
        case .writeAcknowledged(let connection, let characteristic):
            object.put("connectionId", connection)
            object.put("characteristicUuid", characteristic.description)
        case .connectionRequestReceived(let connection, let central, let session):
            object.put("connectionId", connection)
            object.put("centralId", central)
            object.put(session: session)
        case .characteristicWriteReceived(let request, let value):
            request.put(into: &object)
            object.put("value", bytes: value)
        case .disconnected(let connection, let error, let reason, let session):
            object.put("connectionId", connection)
            object.put("error", error)
            object.put("reason", reason?.name)
            object.put(session: session)
        case .error(let error, let context):
            error.put(into: &object)
            object.put("command", context.command)
            object.put("connectionId", context.connection)
            object.put("characteristicUuid", context.characteristic?.description)
        case .done(let attMTU, let isBroadcast):
            object.put("attMtu", attMTU)
            if let isBroadcast { object["notificationScope"] = isBroadcast ? "allSubscribers" : "central" }
        case .advertisementLost(let address):
            object.put("address", address)
        case .serving(let session, let advertising, let degraded):
            object.put("session", session)
            object["advertising"] = .bool(advertising)
            degraded?.put(into: &object, as: "degraded")
        case .interrupted(let session, let error):
            object.put("session", session)
            error.put(into: &object, as: "reason")
        case .characteristicReadReceived(let request):
            request.put(into: &object)
        case .subscriptionChanged(let session, let attribute, let connection, let isSubscribed, let attMTU):
            object.put("session", session)
            attribute.put(into: &object)
            object.put("connectionId", connection)
            object["subscribed"] = .bool(isSubscribed)
            object.put("attMtu", attMTU)
        }
    }
}

extension AttributeRequest {
    fileprivate func put(into object: inout JSONObject) {
        object.put("connectionId", connection)
        attribute.put(into: &object)
        object.put(session: session)
        object.put("requestId", request)
        if offset != 0 { object.put("offset", offset) }
        object.put("attMtu", attMTU)
    }
}

extension AdapterStatus {
    /// The protocol's word for the state; it has four, and the Mac's bridge says `unknown`, too.
    private var word: String {
        switch state {
        case .poweredOn: "poweredOn"
        case .poweredOff, .resetting: "poweredOff"
        case .unauthorized: "unauthorized"
        case .unsupported: "unsupported"
        case .unknown: "unknown"
        }
    }

    fileprivate func put(into object: inout JSONObject) {
        object.put("bluetoothState", word)
        // The envelope keeps `error` for failures, and this is none.
        reason?.put(into: &object, as: "reason")
        if state == .resetting { object.put("detail", "resetting") }
        object.put("adapter", adapter)
        object.put("adapterAddress", address?.description)
    }
}

extension RemoteService {
    fileprivate var fields: JSONObject {
        var object: JSONObject = ["uuid": .string(uuid.description)]
        object["characteristics"] = .array(
            characteristics.map { characteristic in
                var item: JSONObject = ["uuid": .string(characteristic.uuid.description)]
                item.put("properties", PropertyNames.texts(of: characteristic.properties))
                item.put("rawProperties", Int(characteristic.properties.rawValue))
                item.put("characteristicId", characteristic.id)
                return .object(item)
            }
        )
        object.put("serviceId", id)
        if !isPrimary { object["isPrimary"] = false }
        return object
    }
}

extension DisconnectReason {
    static let names: [String: DisconnectReason] = [
        "local": .local, "remote": .remote, "timeout": .timeout, "adapterLost": .adapterLost, "unknown": .unknown,
    ]

    var name: String { Self.names.first { $0.value == self }?.key ?? "unknown" }
}
