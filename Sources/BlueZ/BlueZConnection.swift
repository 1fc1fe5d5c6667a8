// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// A link as the contract shows it. Letting go of it takes the link down, if it is ours.
final class BlueZConnection: PeripheralConnection {
    let peer: PeerIdentifier
    private let core: RadioCore
    private let id: UInt64

    init(_ core: RadioCore, _ id: UInt64, _ peer: PeerIdentifier) {
        self.core = core
        self.id = id
        self.peer = peer
    }

    deinit {
        let (core, id) = (core, id)
        core.loop.execute { core.assumeIsolated { $0.abandonLink(id) } }
    }

    var attMTU: Int? {
        get async { await core.attMTU(id) }
    }

    func discoverServices(awaiting awaited: BluetoothUUID?) async throws(BluetoothError) -> [RemoteService] {
        try await core.discoverServices(id, awaiting: awaited)
    }

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        try await core.read(id, characteristic)
    }

    func write(
        _ value: [UInt8],
        to characteristic: RemoteCharacteristic,
        type: WriteType
    ) async throws(BluetoothError) {
        try await core.write(id, value, characteristic, type)
    }

    func subscribe(to characteristic: RemoteCharacteristic) async throws(BluetoothError) -> Subscription {
        try await core.subscribe(id, characteristic)
    }

    func disconnect() async { await core.disconnect(id) }

    func disconnection() async -> DisconnectReason { await core.disconnection(id) }
}
