// SPDX-License-Identifier: MIT

import BluetoothLE
import JSON

extension BridgeMessage {
    /// Reads one line without its end.
    package init(line: [UInt8]) throws(BridgeMessageError) {
        let fields = MessageFields(object: try JSONObject(line: line))
        let id = try fields.optionalText("id")
        self.id = id
        do throws(BridgeMessageError) {
            event = try BridgeEvent(try fields.text("event"), fields)
        } catch {
            var error = error
            error.id = id
            throw error
        }
    }
}

extension BridgeEvent {
    init(_ name: String, _ fields: MessageFields) throws(BridgeMessageError) {
        switch name {
        case "bridgeReady":
            self = .bridgeReady(
                version: try fields.integer("protocolVersion", 0...Int(Int32.max)),
                platform: try fields.optionalText("platform") ?? "",
                status: try AdapterStatus(fields),
                extensionVersion: try fields.optionalInteger("extension", 1...Int(Int32.max)),
                wantsToken: try fields.flag("tokenRequired", default: false)
            )
        case "bluetoothStateChanged":
            self = .bluetoothStateChanged(try AdapterStatus(fields))
        case "advertisementFound":
            self = try Self.advertisement(fields)
        case "scanFailed":
            self = .scanFailed(try fields.failure(.internalFailure))
        case "connected":
            self = .connected(
                connection: try fields.text("connectionId"), address: try fields.text("address"),
                attMTU: try fields.attMTU())
        case "connectionFailed":
            self = .connectionFailed(
                address: try fields.text("address"), try fields.failure(.connectionFailed))
        case "servicesDiscovered":
            self = .servicesDiscovered(
                connection: try fields.text("connectionId"),
                try fields.remoteServices(),
                attMTU: try fields.attMTU()
            )
        case "characteristicRead":
            self = try Self.read(fields)
        case "characteristicChanged":
            self = .characteristicChanged(
                connection: try fields.text("connectionId"),
                characteristic: try fields.uuid("characteristicUuid"),
                id: try fields.optionalText("characteristicId"),
                value: try fields.bytes("value")
            )
        case "writeAcknowledged":
            self = try Self.acknowledgement(fields)
        case "disconnected":
            self = .disconnected(
                connection: try fields.text("connectionId"),
                error: try fields.optionalText("error", BridgeLimits.errorBytes),
                reason: try fields.optionalText("reason").flatMap { DisconnectReason.names[$0] },
                session: try fields.optionalText("session") ?? ""
            )
        case "error":
            self = .error(
                try fields.failure(.internalFailure),
                FailureContext(
                    command: try fields.optionalText("command"),
                    connection: try fields.optionalText("connectionId"),
                    characteristic: try fields.optionalUUID("characteristicUuid")
                )
            )
        default:
            self = try Self.peripheral(name, fields)
        }
    }

    /// What is told to the peripheral role, and what answers a command of the extension.
    private static func peripheral(_ name: String, _ fields: MessageFields) throws(BridgeMessageError) -> BridgeEvent {
        switch name {
        case "connectionRequestReceived":
            return .connectionRequestReceived(
                connection: try fields.text("connectionId"),
                central: try fields.optionalText("centralId"),
                session: try fields.optionalText("session") ?? ""
            )
        case "characteristicWriteReceived":
            return .characteristicWriteReceived(try AttributeRequest(fields), value: try fields.bytes("value"))
        case "characteristicReadReceived":
            return .characteristicReadReceived(try AttributeRequest(fields))
        case "done":
            let scope = try fields.optionalText("notificationScope")
            return .done(attMTU: try fields.attMTU(), isBroadcast: scope.map { $0 == "allSubscribers" })
        case "advertisementLost":
            return .advertisementLost(address: try fields.text("address"))
        case "serving":
            return .serving(
                session: try fields.text("session"),
                advertising: try fields.flag("advertising"),
                degraded: try BluetoothError(fields, as: "degraded", fallback: .advertisingFailed)
            )
        case "interrupted":
            return .interrupted(
                session: try fields.text("session"),
                try BluetoothError(fields, as: "reason", fallback: .resetting)
                    ?? BluetoothError(.resetting, "interrupted")
            )
        case "subscriptionChanged":
            return .subscriptionChanged(
                session: try fields.text("session"),
                try LocalAttribute(fields),
                connection: try fields.optionalText("connectionId"),
                isSubscribed: try fields.flag("subscribed"),
                attMTU: try fields.attMTU()
            )
        default:
            throw BridgeMessageError(code: .unknown, message: "an unknown event")
        }
    }

    private static func advertisement(_ fields: MessageFields) throws(BridgeMessageError) -> BridgeEvent {
        .advertisementFound(
            address: try fields.text("address"),
            Advertisement(
                localName: try fields.optionalText("localName"),
                serviceUUIDs: Set(try fields.uuids("serviceUuids")),
                serviceData: try fields.serviceData(),
                manufacturerData: try fields.manufacturerData(),
                txPower: try fields.optionalInteger("txPower", -128...127)
            ),
            rssi: try fields.integer("rssi", -1_000...1_000)
        )
    }

    /// The envelope allows `error` in any event.
    private static func read(_ fields: MessageFields) throws(BridgeMessageError) -> BridgeEvent {
        if let failed = try failed(fields, "readCharacteristic") { return failed }
        return .characteristicRead(
            connection: try fields.text("connectionId"),
            characteristic: try fields.uuid("characteristicUuid"),
            value: try fields.bytes("value")
        )
    }

    private static func acknowledgement(_ fields: MessageFields) throws(BridgeMessageError) -> BridgeEvent {
        if let failed = try failed(fields, "writeCharacteristic") { return failed }
        return .writeAcknowledged(
            connection: try fields.text("connectionId"),
            characteristic: try fields.uuid("characteristicUuid")
        )
    }

    private static func failed(_ fields: MessageFields, _ command: String) throws(BridgeMessageError) -> BridgeEvent? {
        guard let error = try BluetoothError(fields, fallback: .attributeError) else { return nil }
        let context = FailureContext(
            command: command,
            connection: try fields.optionalText("connectionId"),
            characteristic: try fields.optionalUUID("characteristicUuid")
        )
        return .error(error, context)
    }
}

extension MessageFields {
    fileprivate func failure(_ code: BluetoothError.Code) throws(BridgeMessageError) -> BluetoothError {
        try BluetoothError(self, fallback: code) ?? BluetoothError(code, "the bridge gave no reason")
    }

    fileprivate func attMTU() throws(BridgeMessageError) -> Int? { try optionalInteger("attMtu", 23...0xFFFF) }

    fileprivate func remoteServices() throws(BridgeMessageError) -> [RemoteService] {
        var count = 0
        var services: [RemoteService] = []
        for (index, service) in try objects("services", BridgeLimits.services).enumerated() {
            var characteristics: [RemoteCharacteristic] = []
            for item in try service.objects("characteristics", BridgeLimits.characteristics) {
                count += 1
                characteristics.append(
                    RemoteCharacteristic(
                        // A bridge without the extension gives no ids: ours are told from its by their first letter.
                        id: try item.optionalText("characteristicId").map { "=" + $0 } ?? "#\(count)",
                        uuid: try item.uuid("uuid"),
                        properties: try item.properties()
                    )
                )
            }
            services.append(
                RemoteService(
                    id: try service.optionalText("serviceId") ?? "#\(index)",
                    uuid: try service.uuid("uuid"),
                    isPrimary: try service.flag("isPrimary", default: true),
                    characteristics: characteristics
                )
            )
        }
        guard count <= BridgeLimits.characteristics else {
            throw BridgeMessageError(code: .badField, message: "there are too many characteristics")
        }
        return services
    }
}

extension AttributeRequest {
    fileprivate init(_ fields: MessageFields) throws(BridgeMessageError) {
        self.init(
            connection: try fields.text("connectionId"),
            attribute: try LocalAttribute(fields),
            session: try fields.optionalText("session") ?? "",
            request: try fields.optionalInteger("requestId", 0...Int.max),
            offset: try fields.optionalInteger("offset", 0...0xFFFF) ?? 0,
            attMTU: try fields.attMTU()
        )
    }
}

extension AdapterStatus {
    fileprivate init(_ fields: MessageFields) throws(BridgeMessageError) {
        let word = try fields.optionalText("bluetoothState") ?? "unknown"
        let isResetting = try fields.optionalText("detail") == "resetting"
        let state = isResetting ? .resetting : AdapterState(rawValue: word) ?? .unknown
        let fallback: BluetoothError.Code =
            switch state {
            case .unsupported: .adapterNotFound
            case .unauthorized: .unauthorized
            case .resetting: .resetting
            default: .poweredOff
            }
        self.init(
            state,
            adapter: try fields.optionalText("adapter"),
            address: try fields.optionalText("adapterAddress").flatMap { BluetoothAddress($0) },
            reason: try BluetoothError(fields, as: "reason", fallback: fallback)
        )
    }
}
