// SPDX-License-Identifier: MIT

import BluetoothLE

/// A radio that notes when its client has found a host.
final class TimedCentral: Central {
    private let radio: any Central
    private let progress: Progress

    init(_ radio: any Central, progress: Progress) {
        self.radio = radio
        self.progress = progress
    }

    var clock: any MonotonicClock { radio.clock }

    func adapterStatuses() -> AsyncStream<AdapterStatus> { radio.adapterStatuses() }

    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan {
        let scan = try await radio.scan(for: filter)
        await progress.reach(.scanning)
        return scan
    }

    func connect(
        to peer: PeerIdentifier,
        timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        await progress.reach(.found)
        return try await radio.connect(to: peer, timeout: timeout)
    }
}
