// SPDX-License-Identifier: MIT

import BluetoothLE

/// Services that centrals use as a test says, and whose notifications wait for it.
final class HeldSession: PeripheralSession {
    let events: AsyncStream<PeripheralEvent>
    private let continuation: AsyncStream<PeripheralEvent>.Continuation
    /// Lets the notifications go.
    let release = Latch<Void>()
    /// What has been answered, in this order.
    let answers = Locked<[RequestID]>([])

    init() { (events, continuation) = AsyncStream.makeStream(of: PeripheralEvent.self) }

    /// A central writes the first characteristic.
    func write(_ id: RequestID) {
        let write = WriteRequest(
            id: id, central: PeerIdentifier("central"),
            characteristic: LocalCharacteristicID(service: 0, characteristic: 0), value: [1], offset: 0, attMTU: nil)
        continuation.yield(.write(write))
    }

    func respond(to request: RequestID, with response: RequestResponse) async {
        answers.withLock { $0.append(request) }
    }

    func notify(
        _ value: [UInt8], on characteristic: LocalCharacteristicID, to central: PeerIdentifier?
    ) async throws(BluetoothError) {
        await release.value()
    }

    func disconnect(_ central: PeerIdentifier) async {}

    func stop() async { continuation.finish() }
}
