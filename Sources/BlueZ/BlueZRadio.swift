// SPDX-License-Identifier: MIT

public import BluetoothLE
internal import DBus

/// The Bluetooth LE contract over BlueZ, both roles.
///
/// It connects to the bus with the first use, shares one connection among everything done through it, and lets go of
/// the connection a few seconds after the last use. It holds nothing between: a radio can be made and kept for free.
public final class BlueZRadio: Radio {
    public var clock: any MonotonicClock { LoopClock(loop: core.loop) }
    public let notificationScope = NotificationScope.allSubscribers
    public var taskExecutor: (any TaskExecutor)? { core.loop }

    private let core: RadioCore

    public init(_ configuration: BlueZConfiguration = BlueZConfiguration()) {
        core = RadioCore(address: BusAddress(argument: configuration.bus), adapter: configuration.adapter)
    }

    public func adapterStatuses() -> AsyncStream<AdapterStatus> {
        let (stream, statuses) = AsyncStream.makeStream(
            of: AdapterStatus.self, bufferingPolicy: .bufferingNewest(Limits.statusEvents))
        let core = core
        core.loop.execute {
            core.assumeIsolated { core in
                let id = core.newID()
                // The stream keeps the core alive, so that it outlives the radio; its end lets go.
                statuses.onTermination = { [core] _ in
                    core.loop.execute { core.assumeIsolated { $0.removeStatusStream(id) } }
                }
                core.addStatusStream(id, statuses)
            }
        }
        return stream
    }

    public func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan {
        try await core.scan(for: filter)
    }

    public func connect(
        to peer: PeerIdentifier,
        timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        BlueZConnection(core, try await core.connect(to: peer, timeout: timeout), peer)
    }

    public func serve(
        _ services: [LocalService],
        advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> any PeripheralSession {
        let (id, events) = try await core.serve(services, advertisement)
        return BlueZSession(core, id, events)
    }

    /// Ends every scan, link and session of this radio, and its streams; returns once the system has been told.
    public func shutdown() async { await core.shutdown() }
}
