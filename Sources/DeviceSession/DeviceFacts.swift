// SPDX-License-Identifier: MIT

public import BluetoothLE

/// What a device says about itself: Battery Service (180F) and Device Information Service (180A), as the Bluetooth SIG
/// specifies them. Texts are a stranger's.
public struct DeviceFacts: Sendable, Hashable {
    /// Per cent, 0 to 100; kept up to date where the device notifies.
    public var batteryLevel: Int?
    public var manufacturer: String?
    public var model: String?
    public var serialNumber: String?
    public var hardwareRevision: String?
    public var firmwareRevision: String?
    public var softwareRevision: String?
    /// Eight bytes as they travel, the least significant first: 40 bits of the manufacturer's, 24 of the IEEE's.
    public var systemID: [UInt8]?
    /// What the device has and would not let us read, with the reason.
    public var unreadable: [BluetoothUUID: BluetoothError] = [:]

    public init() {}

    static let battery: BluetoothUUID = 0x2A19
    static let batteryService: BluetoothUUID = 0x180F
    static let informationService: BluetoothUUID = 0x180A

    private static let texts: [BluetoothUUID: any WritableKeyPath<DeviceFacts, String?> & Sendable] = [
        0x2A29: \.manufacturer, 0x2A24: \.model, 0x2A25: \.serialNumber, 0x2A27: \.hardwareRevision,
        0x2A26: \.firmwareRevision, 0x2A28: \.softwareRevision,
    ]
    private static let systemIDCharacteristic: BluetoothUUID = 0x2A23

    /// Takes a characteristic's value; what makes no sense is left out.
    mutating func take(_ value: [UInt8], of characteristic: BluetoothUUID) {
        unreadable[characteristic] = nil
        if characteristic == Self.battery {
            if let level = value.first, level <= 100 { batteryLevel = Int(level) }
        } else if characteristic == Self.systemIDCharacteristic {
            if value.count == 8 { systemID = value }
        } else if let path = Self.texts[characteristic] {
            // Many devices count the C string's end in.
            let text = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)
            self[keyPath: path] = text.isEmpty ? nil : text
        }
    }

    /// The characteristics of a device that hold facts, one of each kind.
    static func places(in services: [RemoteService]) -> [RemoteCharacteristic] {
        var found: [BluetoothUUID: RemoteCharacteristic] = [:]
        var order: [BluetoothUUID] = []
        for service in services where service.uuid == batteryService || service.uuid == informationService {
            for characteristic in service.characteristics {
                let isBattery = service.uuid == batteryService && characteristic.uuid == battery
                let isFact = texts[characteristic.uuid] != nil || characteristic.uuid == systemIDCharacteristic
                let isInformation = service.uuid == informationService && isFact
                guard isBattery || isInformation, found[characteristic.uuid] == nil else { continue }
                found[characteristic.uuid] = characteristic
                order.append(characteristic.uuid)
            }
        }
        return order.compactMap { found[$0] }
    }
}
