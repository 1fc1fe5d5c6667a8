// SPDX-License-Identifier: MIT

/// A 48-bit Bluetooth device address.
///
/// A phone's address is private and changes about every 15 minutes: never an identity across connections.
public struct BluetoothAddress: Hashable, Sendable {
    /// Whether the address is assigned by the IEEE or made up by the device.
    public enum Kind: String, Sendable, Hashable {
        case `public`
        case random
    }

    /// The 48 bits, the most significant octet first in print.
    public let rawValue: UInt64
    public let kind: Kind

    /// Bits above the 48th are dropped.
    public init(rawValue: UInt64, kind: Kind = .public) {
        self.rawValue = rawValue & 0xFFFF_FFFF_FFFF
        self.kind = kind
    }
}

extension BluetoothAddress: LosslessStringConvertible {
    /// Reads `AA:BB:CC:DD:EE:FF`, in either case, as a public address; `nil` for anything else.
    public init?(_ description: String) {
        self.init(description, kind: .public)
    }

    public init?(_ description: String, kind: Kind) {
        guard description.utf8.count == 17 else { return nil }
        var value: UInt64 = 0
        for (index, unit) in description.utf8.enumerated() {
            if index % 3 == 2 {
                guard unit == UInt8(ascii: ":") else { return nil }
            } else {
                guard let digit = unit.hexValue else { return nil }
                value = value << 4 | UInt64(digit)
            }
        }
        self.init(rawValue: value, kind: kind)
    }

    public var description: String {
        stride(from: 40, through: 0, by: -8).map { shift in
            let octet = UInt8(truncatingIfNeeded: rawValue >> UInt64(shift))
            return (octet < 16 ? "0" : "") + String(octet, radix: 16, uppercase: true)
        }.joined(separator: ":")
    }
}
