// SPDX-License-Identifier: MIT

/// What may be done with a characteristic (Bluetooth Core Specification, Vol 3, Part G, 3.3.1.1).
public struct CharacteristicProperties: OptionSet, Sendable, Hashable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let broadcast = Self(rawValue: 1 << 0)
    public static let read = Self(rawValue: 1 << 1)
    public static let writeWithoutResponse = Self(rawValue: 1 << 2)
    public static let write = Self(rawValue: 1 << 3)
    public static let notify = Self(rawValue: 1 << 4)
    public static let indicate = Self(rawValue: 1 << 5)
    public static let authenticatedSignedWrites = Self(rawValue: 1 << 6)
    public static let extendedProperties = Self(rawValue: 1 << 7)
}

/// A characteristic of a connected peripheral. Good for the connection that discovered it.
public struct RemoteCharacteristic: Sendable, Hashable {
    /// The radio's own name for it, unique within the connection.
    public let id: String
    public let uuid: BluetoothUUID
    public let properties: CharacteristicProperties

    public init(id: String, uuid: BluetoothUUID, properties: CharacteristicProperties) {
        self.id = id
        self.uuid = uuid
        self.properties = properties
    }
}

/// A service of a connected peripheral. A device can have several of one UUID: they differ in `id`.
public struct RemoteService: Sendable, Hashable {
    public let id: String
    public let uuid: BluetoothUUID
    public let isPrimary: Bool
    /// In the order of their handles.
    public let characteristics: [RemoteCharacteristic]

    public init(id: String, uuid: BluetoothUUID, isPrimary: Bool, characteristics: [RemoteCharacteristic]) {
        self.id = id
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.characteristics = characteristics
    }
}

/// A characteristic that a peripheral of ours offers.
public struct LocalCharacteristic: Sendable, Hashable {
    public let uuid: BluetoothUUID
    public let properties: CharacteristicProperties

    public init(_ uuid: BluetoothUUID, _ properties: CharacteristicProperties) {
        self.uuid = uuid
        self.properties = properties
    }
}

/// A service that a peripheral of ours offers.
public struct LocalService: Sendable, Hashable {
    public let uuid: BluetoothUUID
    public let isPrimary: Bool
    public let characteristics: [LocalCharacteristic]

    public init(_ uuid: BluetoothUUID, isPrimary: Bool = true, characteristics: [LocalCharacteristic]) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.characteristics = characteristics
    }
}

/// The place of one of our characteristics in what we serve: positions, because UUIDs may repeat.
public struct LocalCharacteristicID: Sendable, Hashable {
    public let service: Int
    public let characteristic: Int

    public init(service: Int, characteristic: Int) {
        self.service = service
        self.characteristic = characteristic
    }
}
