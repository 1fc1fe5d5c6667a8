// SPDX-License-Identifier: MIT

/// A radio's own name for one remote device, central or peripheral.
///
/// Opaque: BlueZ's is an object path, CoreBluetooth's a UUID. It is good for as long as the radio knows the device
/// (for a central: for one connection) and says nothing about who the device is.
public struct PeerIdentifier: Hashable, Sendable, RawRepresentable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public init(_ rawValue: String) { self.rawValue = rawValue }

    public var description: String { rawValue }
}
