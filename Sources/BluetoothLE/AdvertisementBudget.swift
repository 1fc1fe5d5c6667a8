// SPDX-License-Identifier: MIT

/// The room in a legacy advertisement, which every scanner can see.
///
/// 31 bytes each for the advertisement and the scan response; every element costs two bytes of header
/// (Bluetooth Core Specification, Vol 3, Part C, 11). Flags take three bytes of the advertisement. BlueZ puts the
/// name into the scan response; data that does not fit makes BlueZ 5.76 and later switch to extended advertising,
/// which legacy scanners do not see, so a request is checked before it is registered.
public struct AdvertisementBudget: Sendable, Hashable {
    /// Bytes of the advertisement that the request takes, of 31.
    public let advertisementBytes: Int
    /// Bytes of the scan response that the name takes, of 31.
    public let scanResponseBytes: Int

    public static let capacity = 31
    /// The longest name that fits, in UTF-8 bytes.
    public static let longestName = capacity - 2

    public init(_ request: AdvertisementRequest) {
        var bytes = 3
        for width in [16, 32, 128] {
            let count = Set(request.serviceUUIDs.filter { $0.bitWidth == width }).count
            if count > 0 { bytes += 2 + count * width / 8 }
        }
        for (uuid, data) in request.serviceData { bytes += 2 + uuid.bitWidth / 8 + data.count }
        for data in request.manufacturerData.values { bytes += 2 + 2 + data.count }
        advertisementBytes = bytes
        scanResponseBytes = request.localName.map { $0.isEmpty ? 0 : 2 + $0.utf8.count } ?? 0
    }

    /// `nil` if everything fits, else the error that says what does not and by how much.
    public var error: BluetoothError? {
        if advertisementBytes > Self.capacity {
            return BluetoothError(
                .invalidArgument,
                "the advertisement is \(advertisementBytes - Self.capacity) bytes over the \(Self.capacity) that fit",
                advice: "Advertise fewer or shorter UUIDs, or less service or manufacturer data."
            )
        }
        if scanResponseBytes > Self.capacity {
            return BluetoothError(
                .invalidArgument,
                "the advertised name is \(scanResponseBytes - Self.capacity) bytes too long",
                advice: "Use a name of at most \(Self.longestName) bytes in UTF-8."
            )
        }
        return nil
    }
}
