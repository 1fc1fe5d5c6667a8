// SPDX-License-Identifier: MIT

import DeviceSession
import NearbyDiscoveryKit

/// What `nearby device` says about a device, for people and as JSON. All texts in it are a stranger's.
enum DeviceReport {
    // MARK: Scan

    static func cells(_ result: ScanResult) -> [String] {
        [
            result.address?.description ?? PeerNames.text(result.id),
            PeerNames.rssi(result.rssi),
            result.name.map { PlainText.printable($0) } ?? "-",
            result.advertisement.serviceUUIDs.sorted().map { UUIDNames.name($0) ?? $0.description }
                .joined(separator: ", "),
        ]
    }

    static func table(_ results: [ScanResult]) -> [String] {
        TextTable.lines([["ADDRESS", "RSSI", "NAME", "SERVICES"]] + results.map(cells))
    }

    /// Columns of fixed widths, since the lines come one by one.
    static func line(_ result: ScanResult) -> String {
        var text = ""
        for (cell, width) in zip(cells(result), [17, 8, 29, 0]) {
            text += cell + String(repeating: " ", count: max(0, width - PlainText.width(cell)) + (width > 0 ? 2 : 0))
        }
        while text.last == " " { text.removeLast() }
        return text
    }

    static func json(_ result: ScanResult) -> JSONObject {
        .compact([
            "event": "discovered",
            "device": .string(result.id),
            "address": result.address.map { .string($0.description) },
            "name": result.name.map(JSONValue.string),
            "rssi": result.rssi.map(JSONValue.int),
            "services": .array(result.advertisement.serviceUUIDs.sorted().map { .string($0.description) }),
        ])
    }

    // MARK: Facts

    private static func rows(_ facts: DeviceFacts) -> [(label: String, key: String, value: String?)] {
        [
            ("manufacturer", "manufacturer", facts.manufacturer),
            ("model", "model", facts.model),
            ("serial number", "serialNumber", facts.serialNumber),
            ("hardware", "hardwareRevision", facts.hardwareRevision),
            ("firmware", "firmwareRevision", facts.firmwareRevision),
            ("software", "softwareRevision", facts.softwareRevision),
            ("system id", "systemId", facts.systemID.map { hex($0) }),
        ]
    }

    static func lines(_ facts: DeviceFacts, of device: ScanResult?) -> [String] {
        var rows = [("name", device?.name), ("address", device?.address?.description)]
        rows.append(("battery", facts.batteryLevel.map { "\($0) %" }))
        rows += Self.rows(facts).map { ($0.label, $0.value) }
        var lines = rows.compactMap { label, value in
            value.map { TextTable.line(label, PlainText.printable($0), width: 13) }
        }
        for (uuid, error) in facts.unreadable.sorted(by: { $0.key < $1.key }) {
            let name = UUIDNames.name(uuid) ?? uuid.description
            lines.append(TextTable.line("not readable", "\(name): \(PlainText.printable(error.message))", width: 13))
        }
        return lines
    }

    static func json(_ facts: DeviceFacts, of device: ScanResult?) -> JSONObject {
        var object: JSONObject = .compact([
            "event": "info",
            "device": device.map { .string($0.id) },
            "address": device?.address.map { .string($0.description) },
            "name": device?.name.map(JSONValue.string),
            "batteryLevel": facts.batteryLevel.map(JSONValue.int),
        ])
        for row in rows(facts) { object[row.key] = row.value.map(JSONValue.string) }
        return object
    }

    // MARK: Services

    static func lines(_ services: [RemoteService]) -> [String] {
        services.flatMap { service in
            [title(service.uuid)]
                + TextTable.lines(
                    service.characteristics.map { characteristic in
                        [
                            "  " + title(characteristic.uuid),
                            names(of: characteristic.properties).joined(separator: ", "),
                        ]
                    })
        }
    }

    private static func title(_ uuid: BluetoothUUID) -> String {
        UUIDNames.name(uuid).map { "\(uuid)  \($0)" } ?? uuid.description
    }

    static func json(_ services: [RemoteService], of device: ScanResult?) -> JSONObject {
        let services = services.map { service in
            JSONValue.object(
                .compact([
                    "uuid": .string(service.uuid.description),
                    "name": UUIDNames.name(service.uuid).map(JSONValue.string),
                    "isPrimary": .bool(service.isPrimary),
                    "characteristics": .array(service.characteristics.map(json)),
                ])
            )
        }
        return .compact([
            "event": "services", "device": device.map { .string($0.id) }, "services": .array(services),
        ])
    }

    private static func json(_ characteristic: RemoteCharacteristic) -> JSONValue {
        .object(
            .compact([
                "uuid": .string(characteristic.uuid.description),
                "name": UUIDNames.name(characteristic.uuid).map(JSONValue.string),
                "properties": .array(names(of: characteristic.properties).map(JSONValue.string)),
            ])
        )
    }

    static func names(of properties: CharacteristicProperties) -> [String] {
        let names: [(CharacteristicProperties, String)] = [
            (.broadcast, "broadcast"), (.read, "read"), (.writeWithoutResponse, "write-without-response"),
            (.write, "write"), (.notify, "notify"), (.indicate, "indicate"),
            (.authenticatedSignedWrites, "authenticated-signed-writes"), (.extendedProperties, "extended-properties"),
        ]
        return names.filter { properties.contains($0.0) }.map(\.1)
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
