// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// The object `org.bluez.GattService1` of a service that we offer.
final class LocalService1: ExportedObject {
    let interfaces = [
        ExportedInterface(
            BlueZName.gattService,
            properties: [
                .init("UUID", .string, emitsChange: .constant), .init("Primary", .bool, emitsChange: .constant),
            ])
    ]
    private let service: LocalService

    init(_ service: LocalService) { self.service = service }

    func property(_ name: String, of interface: String) -> DBusValue? {
        switch name {
        case "UUID": .string(service.uuid.longDescription)
        case "Primary": .bool(service.isPrimary)
        default: nil
        }
    }
}

/// The object `org.bluez.GattCharacteristic1` of a characteristic that we offer.
///
/// It has no `WriteAcquired`: bluetoothd can flush the queued writes of all devices into one client's socket (rule 3).
/// It has no readable `Value` either: bluetoothd would take a value in `GetManagedObjects` for one to notify; values
/// travel in `PropertiesChanged` only.
final class LocalCharacteristic1: ExportedObject {
    let interfaces: [ExportedInterface]
    private let characteristic: LocalCharacteristic
    private let service: ObjectPath
    private let onCall: @Sendable (MethodCall) -> Void

    init(
        _ characteristic: LocalCharacteristic,
        of service: ObjectPath,
        onCall: @escaping @Sendable (MethodCall) -> Void
    ) {
        self.characteristic = characteristic
        self.service = service
        self.onCall = onCall
        var properties: [ExportedInterface.Property] = [
            .init("UUID", .string, emitsChange: .constant), .init("Service", .objectPath, emitsChange: .constant),
            .init("Flags", .strings, emitsChange: .constant),
        ]
        var methods: [ExportedInterface.Method] = [
            .init("ReadValue", .variantDictionary, returns: .bytes, argumentNames: ["options", "value"]),
            .init("WriteValue", "aya{sv}", argumentNames: ["value", "options"]),
        ]
        if characteristic.notifies {
            // Its presence makes bluetoothd call AcquireNotify, which alone says who subscribes (rule 2).
            properties.append(.init("NotifyAcquired", .bool))
            methods += [
                .init("AcquireNotify", .variantDictionary, returns: "hq", argumentNames: ["options", "fd", "mtu"]),
                .init("StartNotify"), .init("StopNotify"), .init("Confirm", noReply: true),
            ]
        }
        interfaces = [ExportedInterface(BlueZName.gattCharacteristic, methods: methods, properties: properties)]
    }

    func handle(_ call: MethodCall) { onCall(call) }

    func property(_ name: String, of interface: String) -> DBusValue? {
        switch name {
        case "UUID": .string(characteristic.uuid.longDescription)
        case "Service": .objectPath(service)
        case "Flags": .strings(characteristic.properties.flags)
        case "NotifyAcquired": .bool(false)
        default: nil
        }
    }
}

extension LocalCharacteristic {
    var notifies: Bool { !properties.isDisjoint(with: [.notify, .indicate]) }
}

/// The options that bluetoothd gives with a request (src/gatt-database.c, append_options).
struct RequestOptions: Sendable, Hashable {
    let central: ObjectPath
    let offset: Int
    /// The ATT MTU; read afresh from each call, because it is only ever raised (rule 7).
    let mtu: Int?
    /// bluetoothd only asks whether a prepared write may be made; the value comes later.
    let isAuthorization: Bool

    /// `nil` without the device: nobody else than bluetoothd calls so, and identity is nothing but this path (rule 2).
    init?(_ value: DBusValue?) {
        guard let options = value?.asDictionary, let device = options["device"]?.asObjectPath else { return nil }
        central = device
        offset = options["offset"]?.asUInt16.map(Int.init) ?? 0
        mtu = options["mtu"]?.asUInt16.map(Int.init)
        isAuthorization = options["prepare-authorize"]?.asBool ?? false
    }
}

/// Which services may be offered.
enum LocalGATT {
    static func check(_ services: [LocalService]) throws(BluetoothError) {
        guard services.count <= Limits.services,
            services.allSatisfy({ $0.characteristics.count <= Limits.characteristics })
        else {
            throw BluetoothError(
                .limitExceeded,
                "at most \(Limits.services) services with \(Limits.characteristics) characteristics each")
        }
        for characteristic in services.flatMap(\.characteristics) {
            // With both, bluetoothd acknowledges a write before the application has answered (rule 4).
            if characteristic.properties.isSuperset(of: [.write, .writeWithoutResponse]) {
                throw BluetoothError(
                    .invalidArgument,
                    "the characteristic \(characteristic.uuid) has both write and write-without-response",
                    advice: "Offer them as two characteristics: with both, BlueZ acknowledges before you have answered."
                )
            }
        }
    }
}
