// SPDX-License-Identifier: MIT

import BluetoothLE
import JSON

extension BridgeRequest {
    /// Reads one line without its end.
    package init(line: [UInt8]) throws(BridgeMessageError) {
        let fields = MessageFields(object: try JSONObject(line: line))
        let name = try fields.optionalText("command")
        id = try fields.optionalText("id")
        guard let name else { throw BridgeMessageError(code: .unknown, message: "“command” is missing", id: id) }
        do throws(BridgeMessageError) {
            command = try BridgeCommand(name, fields)
        } catch {
            var error = error
            error.id = id
            error.command = name
            throw error
        }
    }
}

extension JSONObject {
    init(line: [UInt8]) throws(BridgeMessageError) {
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONReader.read(line, maxDepth: BridgeLimits.jsonDepth)
        } catch {
            throw BridgeMessageError(code: .notJSON, message: "the line is no JSON: \(error)")
        }
        guard let object = value.object else {
            throw BridgeMessageError(code: .notJSON, message: "the line is no JSON object")
        }
        self = object
    }
}

extension BridgeCommand {
    init(_ name: String, _ fields: MessageFields) throws(BridgeMessageError) {
        switch name {
        case "startScan":
            self = .startScan(
                services: try fields.uuids("serviceUuids"),
                allowDuplicates: try fields.flag("allowDuplicates", default: false)
            )
        case "stopScan":
            self = .stopScan
        case "connect":
            self = .connect(
                address: try fields.text("address"),
                timeout: try fields.duration("timeout", BridgeLimits.connectTimeout)
            )
        case "discoverServices":
            self = .discoverServices(
                connection: try fields.text("connectionId"),
                services: try fields.uuids("serviceUuids"),
                awaiting: try fields.optionalUUID("awaiting")
            )
        case "readCharacteristic":
            self = .readCharacteristic(try RemoteAttribute(fields))
        case "writeCharacteristic":
            self = .writeCharacteristic(
                try RemoteAttribute(fields),
                value: try fields.bytes("value"),
                withResponse: try fields.flag("withResponse", default: true)
            )
        case "setNotify":
            self = .setNotify(try RemoteAttribute(fields), enable: try fields.flag("enable"))
        case "advertise":
            self = .advertise(try Offer(fields))
        case "stopAdvertise":
            self = .stopAdvertise(session: try fields.optionalText("session") ?? "")
        case "sendNotification":
            self = .sendNotification(
                connection: try fields.optionalText("connectionId"),
                try LocalAttribute(fields),
                value: try fields.bytes("value"),
                session: try fields.optionalText("session") ?? ""
            )
        case "disconnect":
            self = .disconnect(connection: try fields.text("connectionId"))
        case "hello":
            self = .hello(
                version: try fields.integer("extension", 1...Int(Int32.max)),
                token: try fields.optionalText("token", BridgeLimits.textBytes)
            )
        case "respond":
            self = .respond(
                request: try fields.integer("requestId", 0...Int.max), try RequestResponse(fields))
        case "cancel":
            self = .cancel(target: try fields.text("target"))
        default:
            throw BridgeMessageError(code: .unknown, message: "an unknown command")
        }
    }
}

extension RemoteAttribute {
    init(_ fields: MessageFields) throws(BridgeMessageError) {
        self.init(
            connection: try fields.text("connectionId"),
            service: try fields.uuid("serviceUuid"),
            characteristic: try fields.uuid("characteristicUuid"),
            id: try fields.optionalText("characteristicId")
        )
    }
}

extension LocalAttribute {
    init(_ fields: MessageFields) throws(BridgeMessageError) {
        let service = try fields.optionalInteger("serviceIndex", 0...BridgeLimits.services - 1)
        let characteristic = try fields.optionalInteger("characteristicIndex", 0...BridgeLimits.characteristics - 1)
        var place: LocalCharacteristicID?
        if let service, let characteristic {
            place = LocalCharacteristicID(service: service, characteristic: characteristic)
        }
        self.init(
            service: try fields.uuid("serviceUuid"),
            characteristic: try fields.uuid("characteristicUuid"),
            place: place
        )
    }
}

extension RequestResponse {
    fileprivate init(_ fields: MessageFields) throws(BridgeMessageError) {
        if let error = try fields.optionalInteger("attError", 1...255) {
            self = .refuse(ATTError(rawValue: UInt8(error)))
        } else if let value = try fields.optionalBytes("value") {
            self = .value(value)
        } else {
            self = .accept
        }
    }
}

extension Offer {
    fileprivate init(_ fields: MessageFields) throws(BridgeMessageError) {
        let detailed = fields.value("services") != nil
        let services = detailed ? try Self.detailedServices(fields) : try Self.groupedServices(fields)
        var advertisement: AdvertisementRequest?
        if try fields.flag("advertising", default: true) {
            var request = AdvertisementRequest(
                localName: try fields.optionalText("localName"),
                serviceUUIDs: try fields.uuids("serviceUuids"),
                serviceData: try fields.serviceData(),
                manufacturerData: try fields.manufacturerData()
            )
            if detailed {
                let longest = Duration.seconds(60)
                let lower = try fields.duration("minimumInterval", longest)
                let upper = try fields.duration("maximumInterval", longest)
                request.interval = if let lower, let upper, lower <= upper { lower...upper } else { nil }
            }
            advertisement = request
        }
        self.init(
            services: services,
            advertisement: advertisement,
            session: try fields.optionalText("session") ?? "",
            isDetailed: detailed
        )
    }

    /// The protocol's own form: a flat list, where services come about by grouping.
    private static func groupedServices(_ fields: MessageFields) throws(BridgeMessageError) -> [LocalService] {
        var order: [BluetoothUUID] = []
        var characteristics: [BluetoothUUID: [LocalCharacteristic]] = [:]
        for item in try fields.objects("characteristics", BridgeLimits.characteristics) {
            let service = try item.uuid("serviceUuid")
            let characteristic = try item.uuid("characteristicUuid")
            let permissions = try item.texts("permissions")
            var properties = PropertyNames.properties(try item.texts("properties"))
            // Where there are permissions, a property that they do not allow could only ever be refused.
            if item.value("permissions") != nil {
                if !permissions.contains("readable") { properties.remove(.read) }
                if !permissions.contains("writeable") { properties.subtract([.write, .writeWithoutResponse]) }
            }
            if characteristics[service] == nil { order.append(service) }
            characteristics[service, default: []].append(LocalCharacteristic(characteristic, properties))
        }
        guard order.count <= BridgeLimits.services else {
            throw BridgeMessageError(
                code: .badField, message: "“characteristics” names more than \(BridgeLimits.services)")
        }
        return order.map { LocalService($0, characteristics: characteristics[$0] ?? []) }
    }

    private static func detailedServices(_ fields: MessageFields) throws(BridgeMessageError) -> [LocalService] {
        try fields.objects("services", BridgeLimits.services).map { service throws(BridgeMessageError) in
            LocalService(
                try service.uuid("uuid"),
                isPrimary: try service.flag("isPrimary", default: true),
                characteristics: try service.objects("characteristics", BridgeLimits.characteristics)
                    .map { item throws(BridgeMessageError) in
                        LocalCharacteristic(try item.uuid("uuid"), try item.properties())
                    }
            )
        }
    }
}
