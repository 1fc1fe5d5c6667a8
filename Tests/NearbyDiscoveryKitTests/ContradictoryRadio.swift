// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio

@testable import NearbyDiscoveryKit

/// A radio that says it is on, and refuses whatever it is asked for, each time after a while.
final class ContradictoryRadio: Radio {
    let clock: any MonotonicClock
    let notificationScope = NotificationScope.allSubscribers
    private let error: BluetoothError
    private let delay: Duration
    private let attempts = Locked(0)

    init(_ clock: ManualClock, refusing error: BluetoothError, after delay: Duration = .zero) {
        self.clock = clock
        self.error = error
        self.delay = delay
    }

    var count: Int { attempts.withLock { $0 } }

    func adapterStatuses() -> AsyncStream<AdapterStatus> {
        let (stream, statuses) = AsyncStream.makeStream(of: AdapterStatus.self)
        statuses.yield(AdapterStatus(.poweredOn, adapter: "hci0"))
        return stream
    }

    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan { throw await refusal() }

    func connect(
        to peer: PeerIdentifier,
        timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        throw await refusal()
    }

    func serve(
        _ services: [LocalService],
        advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> any PeripheralSession {
        throw await refusal()
    }

    private func refusal() async -> BluetoothError {
        attempts.withLock { $0 += 1 }
        guard delay > .zero else { return error }
        do { try await clock.sleep(for: delay) } catch { return .cancelled }
        return error
    }
}
