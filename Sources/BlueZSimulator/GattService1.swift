// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus
internal import SimulatedRadio

/// org.bluez.GattService1 of a remote device.
///
/// Source: src/gatt-client.c of BlueZ, doc/org.bluez.GattService.rst.
@BlueZSimulatorActor
final class GattService1: BusInterface {
    let service: RemoteService
    let path: ObjectPath
    let handle: UInt16
    let device: Device1
    private(set) var characteristics: [GattCharacteristic1] = []
    nonisolated let declaration: ExportedInterface

    var uuid: BluetoothUUID { service.uuid }

    /// - Returns: nil if the radio's name for the service is no handle.
    init?(_ service: RemoteService, device: Device1, mtu: Int) {
        guard let handle = service.simulatedHandle, let path = device.path.appending("service" + Self.digits(handle))
        else { return nil }
        self.service = service
        self.handle = handle
        self.path = path
        self.device = device
        declaration = Self.declare(device.adapter.profile)
        characteristics = service.characteristics.compactMap { GattCharacteristic1($0, service: self, mtu: mtu) }
    }

    /// Four hexadecimal digits, as in BlueZ's paths.
    static func digits(_ handle: UInt16) -> String {
        let digits = String(handle, radix: 16)
        return String(repeating: "0", count: 4 - digits.utf8.count) + digits
    }

    func export() {
        device.adapter.presence.export([self], at: path, owner: device)
        for characteristic in characteristics {
            device.adapter.presence.export([characteristic], at: characteristic.path, owner: self)
        }
    }

    func remove() {
        for characteristic in characteristics {
            characteristic.disconnected()
            device.adapter.presence.unexport(characteristic.path)
        }
        characteristics = []
        device.adapter.presence.unexport(path)
    }

    func reconnected(mtu: Int) {
        for characteristic in characteristics { characteristic.reconnected(mtu: mtu) }
    }

    func disconnected() {
        for characteristic in characteristics { characteristic.disconnected() }
    }

    func handle(_ call: MethodCall) { call.fail(.notSupported) }

    func property(_ name: String) -> DBusValue? {
        switch name {
        case "Handle": .uint16(handle)
        case "UUID": .string(service.uuid.longDescription)
        case "Device": .objectPath(device.path)
        case "Primary": .bool(service.isPrimary)
        case "Includes": .objectPaths([])
        default: nil
        }
    }

    private nonisolated static func declare(_ profile: BehaviourProfile) -> ExportedInterface {
        var properties: [ExportedInterface.Property] = [
            .init("UUID", "s"), .init("Device", "o"), .init("Primary", "b"), .init("Includes", "ao"),
        ]
        if profile.hasHandleProperty { properties.append(.init("Handle", "q")) }
        return ExportedInterface("org.bluez.GattService1", properties: properties)
    }
}
