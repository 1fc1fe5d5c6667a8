// SPDX-License-Identifier: MIT

public import BluetoothLE

/// The Bluetooth LE contract over BlueZ, both roles.
///
/// It connects to the bus with the first use, shares one connection among everything done through it, and lets go of
/// the connection a few seconds after the last use. It holds nothing between: a radio can be made and kept for free.
public final class BlueZRadio: Radio {
    public let clock: any MonotonicClock = ContinuousClock()
    public let notificationScope = NotificationScope.allSubscribers

    public init(_ configuration: BlueZConfiguration = BlueZConfiguration()) {}

    public func adapterStatuses() -> AsyncStream<AdapterStatus> {
        AsyncStream { $0.finish() }
    }

    public func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan {
        throw BluetoothError(.serviceUnavailable, "not built yet")
    }

    public func connect(
        to peer: PeerIdentifier,
        timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        throw BluetoothError(.serviceUnavailable, "not built yet")
    }

    public func serve(
        _ services: [LocalService],
        advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> any PeripheralSession {
        throw BluetoothError(.serviceUnavailable, "not built yet")
    }

    /// Ends every scan, link and session of this radio, and its streams; returns once the system has been told.
    public func shutdown() async {}
}
