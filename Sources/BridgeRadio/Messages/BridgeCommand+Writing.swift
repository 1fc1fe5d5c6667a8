// SPDX-License-Identifier: MIT

import BluetoothLE
import JSON

extension BridgeRequest {
    /// The message as one line, with its end.
    package func line() -> [UInt8] {
        var object: JSONObject = ["command": .string(command.name)]
        object.put("id", id)
        command.put(into: &object)
        return object.encoded() + [UInt8(ascii: "\n")]
    }
}

extension BridgeCommand {
    fileprivate func put(into object: inout JSONObject) {
        switch self {
        case .startScan(let services, let allowDuplicates):
            if !services.isEmpty { object.put("serviceUuids", services) }
            if allowDuplicates { object["allowDuplicates"] = true }
        case .stopScan:
            break
        case .connect(let address, let timeout):
            object.put("address", address)
            object.put("timeout", timeout?.milliseconds)
        case .discoverServices(let connection, let services, let awaiting):
            object.put("connectionId", connection)
            if !services.isEmpty { object.put("serviceUuids", services) }
            object.put("awaiting", awaiting?.description)
        case .readCharacteristic(let attribute):
            attribute.put(into: &object)
        case .writeCharacteristic(let attribute, let value, let withResponse):
            attribute.put(into: &object)
            object.put("value", bytes: value)
            object["withResponse"] = .bool(withResponse)
        case .setNotify(let attribute, let enable):
            attribute.put(into: &object)
            object["enable"] = .bool(enable)
        case .advertise(let offer):
            offer.put(into: &object)
        case .stopAdvertise(let session):
            object.put(session: session)
        case .sendNotification(let connection, let attribute, let value, let session):
            object.put("connectionId", connection)
            attribute.put(into: &object)
            object.put("value", bytes: value)
            object.put(session: session)
        case .disconnect(let connection):
            object.put("connectionId", connection)
        case .hello(let version, let token):
            object.put("extension", version)
            object.put("token", token)
        case .respond(let request, let response):
            object.put("requestId", request)
            switch response {
            case .accept: break
            case .value(let value): object.put("value", bytes: Array(value.prefix(BridgeLimits.valueBytes)))
            case .refuse(let error): object.put("attError", Int(error.rawValue))
            }
        case .cancel(let target):
            object.put("target", target)
        }
    }
}

extension JSONObject {
    mutating func put(session: String) {
        if !session.isEmpty { put("session", session) }
    }
}

extension RemoteAttribute {
    fileprivate func put(into object: inout JSONObject) {
        object.put("connectionId", connection)
        object.put("serviceUuid", service.description)
        object.put("characteristicUuid", characteristic.description)
        object.put("characteristicId", id)
    }
}

extension LocalAttribute {
    func put(into object: inout JSONObject) {
        object.put("serviceUuid", service.description)
        object.put("characteristicUuid", characteristic.description)
        object.put("serviceIndex", place?.service)
        object.put("characteristicIndex", place?.characteristic)
    }
}

extension Offer {
    fileprivate func put(into object: inout JSONObject) {
        object.put("serviceUuids", advertisement?.serviceUUIDs ?? [])
        object.put("localName", advertisement?.localName)
        object["characteristics"] = .array(
            services.flatMap { service in
                service.characteristics.map { characteristic in
                    var item: JSONObject = [
                        "serviceUuid": .string(service.uuid.description),
                        "characteristicUuid": .string(characteristic.uuid.description),
                    ]
                    let properties = characteristic.properties
                    item.put("properties", PropertyNames.texts(of: properties))
                    var permissions: [String] = []
                    if properties.contains(.read) { permissions.append("readable") }
                    if !properties.isDisjoint(with: [.write, .writeWithoutResponse]) {
                        permissions.append("writeable")
                    }
                    item.put("permissions", permissions)
                    return .object(item)
                }
            }
        )
        object.put(session: session)
        if let advertisement {
            if !advertisement.serviceData.isEmpty { object.put("serviceData", advertisement.serviceData) }
            object.put(manufacturerData: advertisement.manufacturerData)
        } else {
            object["advertising"] = false
        }
        guard isDetailed else { return }
        object["services"] = .array(services.map { .object($0.details) })
        object.put("minimumInterval", advertisement?.interval?.lowerBound.milliseconds)
        object.put("maximumInterval", advertisement?.interval?.upperBound.milliseconds)
    }
}

extension LocalService {
    fileprivate var details: JSONObject {
        var object: JSONObject = ["uuid": .string(uuid.description)]
        if !isPrimary { object["isPrimary"] = false }
        object["characteristics"] = .array(
            characteristics.map {
                ["uuid": .string($0.uuid.description), "rawProperties": .int(Int($0.properties.rawValue))]
            }
        )
        return object
    }
}

extension Duration {
    /// Whole ones, rounded down, within an hour.
    var milliseconds: Int { Int(min(max(self, .zero), .seconds(3_600)) / .milliseconds(1)) }
}
