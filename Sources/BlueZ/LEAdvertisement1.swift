// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// The object `org.bluez.LEAdvertisement1` that bluetoothd reads an advertisement from.
final class LEAdvertisement1: ExportedObject {
    let interfaces: [ExportedInterface]
    private let values: [String: DBusValue]
    private let onRelease: @Sendable (_ sender: String) -> Void

    /// - Parameter onRelease: Whether the sender may take it back is the receiver's to judge.
    init(
        _ request: AdvertisementRequest, form: AdvertisingForm,
        onRelease: @escaping @Sendable (_ sender: String) -> Void
    ) {
        let values = Self.values(request, form)
        self.values = values
        self.onRelease = onRelease
        var properties = values.sorted { $0.key < $1.key }.map {
            ExportedInterface.Property(
                $0.key, $0.value.signature, emitsChange: $0.key == "Duration" ? .withValue : .constant)
        }
        // bluetoothd tells what power and instance it chose (rule 12). Accepted, not kept.
        properties.append(.init("TxPower", "n", access: .readWrite, emitsChange: .none))
        properties.append(.init("Instance", "y", access: .readWrite, emitsChange: .none))
        interfaces = [
            ExportedInterface(
                BlueZName.advertisement,
                methods: [.init("Release", noReply: true)],
                properties: properties
            )
        ]
    }

    private static func values(_ request: AdvertisementRequest, _ form: AdvertisingForm) -> [String: DBusValue] {
        var values: [String: DBusValue] = [
            "Type": .string("peripheral"),
            // Sets the flag "LE general discoverable", for this advertisement only. Without it some scanners leave us
            // out, and phones page the BR/EDR side of a dual-mode adapter (rule 12). In BlueZ since 5.50.
            "Discoverable": .bool(true),
            // Whatever is the kernel's turn among several advertisements, as without it. Here to be announced (rule 14).
            "Duration": .uint16(0),
        ]
        if !request.serviceUUIDs.isEmpty {
            values["ServiceUUIDs"] = .strings(request.serviceUUIDs.map(\.longDescription))
        }
        if !request.serviceData.isEmpty {
            values["ServiceData"] = .dictionary(
                key: .string, value: .variant,
                request.serviceData.sorted { $0.key < $1.key }.map {
                    DBusEntry(.string($0.key.longDescription), .variant(.bytes($0.value)))
                })
        }
        if !request.manufacturerData.isEmpty {
            values["ManufacturerData"] = .dictionary(
                key: "q", value: .variant,
                request.manufacturerData.sorted { $0.key < $1.key }.map {
                    DBusEntry(.uint16($0.key), .variant(.bytes($0.value)))
                })
        }
        if form.name, let name = request.localName, !name.isEmpty { values["LocalName"] = .string(name) }
        if form.interval, let interval = request.interval {
            // Both or neither: one alone makes the other zero, and the pair invalid (rule 12).
            let shortest = milliseconds(interval.lowerBound)
            values["MinInterval"] = .uint32(shortest)
            values["MaxInterval"] = .uint32(max(shortest, milliseconds(interval.upperBound)))
        }
        return values
    }

    /// BlueZ takes 20 ms to 10,485 s.
    private static func milliseconds(_ duration: Duration) -> UInt32 {
        let (seconds, attoseconds) = duration.components
        guard duration > .zero else { return 20 }
        guard seconds < 10_485 else { return 10_485_000 }
        return UInt32(max(20, seconds * 1000 + attoseconds / 1_000_000_000_000_000))
    }

    func handle(_ call: MethodCall) {
        call.reply()
        if call.member == "Release" { onRelease(call.sender) }
    }

    func property(_ name: String, of interface: String) -> DBusValue? { values[name] }

    func setProperty(_ name: String, of interface: String, to value: DBusValue) -> DBusError? { nil }
}
