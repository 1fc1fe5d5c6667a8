// SPDX-License-Identifier: MIT

import JSON

/// What the protocol's own clients are told: its fields and no others, whatever the extension adds.
enum PlainForm {
    private static let fields: [String: Set<String>] = [
        // How a client learns that there is an extension, and that it needs a token.
        "bridgeReady": ["protocolVersion", "platform", "bluetoothState", "extension", "tokenRequired"],
        "bluetoothStateChanged": ["bluetoothState"],
        "advertisementFound": ["address", "localName", "rssi", "serviceUuids", "serviceData"],
        "scanFailed": ["error"],
        "connected": ["connectionId", "address"],
        "connectionFailed": ["address", "error"],
        "servicesDiscovered": ["connectionId", "services"],
        "characteristicRead": ["connectionId", "characteristicUuid", "value"],
        "characteristicChanged": ["connectionId", "characteristicUuid", "value"],
        "writeAcknowledged": ["connectionId", "characteristicUuid"],
        "connectionRequestReceived": ["connectionId", "centralId"],
        "characteristicWriteReceived": ["connectionId", "serviceUuid", "characteristicUuid", "value"],
        "disconnected": ["connectionId", "error"],
    ]

    private static let nested: Set<String> = ["uuid", "characteristics", "properties"]

    static func reduce(_ object: JSONObject) -> JSONObject {
        guard let event = object.string("event"), let known = fields[event] else { return object }
        return JSONObject(
            object.filter { $0.key == "event" || $0.key == "id" || known.contains($0.key) }
                .map { ($0.key, $0.key == "services" ? reduce($0.value) : $0.value) })
    }

    private static func reduce(_ value: JSONValue) -> JSONValue {
        switch value {
        case .array(let values):
            return .array(values.map(reduce))
        case .object(let object):
            return .object(
                JSONObject(object.filter { nested.contains($0.key) }.map { ($0.key, reduce($0.value)) }))
        default:
            return value
        }
    }
}
