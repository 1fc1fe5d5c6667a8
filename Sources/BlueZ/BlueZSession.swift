// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// A session as the contract shows it. Letting go of it stops it.
final class BlueZSession: PeripheralSession {
    let events: AsyncStream<PeripheralEvent>
    private let core: RadioCore
    private let id: UInt64

    init(_ core: RadioCore, _ id: UInt64, _ events: AsyncStream<PeripheralEvent>) {
        self.core = core
        self.id = id
        self.events = events
    }

    deinit {
        let (core, id) = (core, id)
        core.loop.execute { core.assumeIsolated { $0.abandonSession(id) } }
    }

    func respond(to request: RequestID, with response: RequestResponse) async {
        await core.respond(id, request, response)
    }

    func notify(
        _ value: [UInt8],
        on characteristic: LocalCharacteristicID,
        to central: PeerIdentifier?
    ) async throws(BluetoothError) {
        try await core.notify(id, value, characteristic, central)
    }

    func disconnect(_ central: PeerIdentifier) async { await core.disconnectCentral(id, central) }

    func stop() async { await core.stopSession(id) }
}
