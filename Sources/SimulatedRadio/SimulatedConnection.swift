// SPDX-License-Identifier: MIT

import BluetoothLE

/// A link as its central sees it.
final class SimulatedConnection: PeripheralConnection {
    private let adapter: AdapterHandle
    private let link: EstablishedLink
    let peer: PeerIdentifier

    init(adapter: AdapterHandle, peer: PeerIdentifier, link: EstablishedLink) {
        self.adapter = adapter
        self.peer = peer
        self.link = link
    }

    var attMTU: Int? {
        get async {
            let id = link.id
            return adapter.core.turn { $0.toldMTU(id) }
        }
    }

    func discoverServices(awaiting awaited: BluetoothUUID?) async throws(BluetoothError) -> [RemoteService] {
        try await perform { (state, link, promise) throws(BluetoothError) in
            try state.discover(link, awaiting: awaited, promise)
        }
    }

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        try await perform { (state, link, promise) throws(BluetoothError) in
            try state.read(link, characteristic, promise)
        }
    }

    func write(
        _ value: [UInt8],
        to characteristic: RemoteCharacteristic,
        type: WriteType
    ) async throws(BluetoothError) {
        _ = try await perform { (state, link, promise: Promise<Void>) throws(BluetoothError) in
            try state.write(link, value, characteristic, type, promise)
        }
    }

    func subscribe(to characteristic: RemoteCharacteristic) async throws(BluetoothError) -> Subscription {
        let core = adapter.core
        let link = link.id
        let mailbox = Mailbox<[UInt8]>(.newest(Limits.subscriptionValues), activity: core.activity)
        let subscription = try await perform { (state, link, promise: Promise<SubscriptionID>) throws(BluetoothError) in
            try state.subscribe(link, characteristic, mailbox, promise)
        }
        // As with BlueZ, who drops a subscription without cancelling it stays subscribed while the link is up.
        return Subscription(values: mailbox.stream(keeping: nil)) { core.turn { $0.unsubscribe(link, subscription) } }
    }

    func disconnect() async {
        let id = link.id
        adapter.core.turn { $0.takeDown(id, central: .local, peripheral: .remote) }
    }

    func disconnection() async -> DisconnectReason {
        await link.down.value(orWhenCancelled: .local)
    }

    private func perform<Value: Sendable>(
        _ start: (inout MediumState, LinkID, Promise<Value>) throws(BluetoothError) -> OperationID
    ) async throws(BluetoothError) -> Value {
        if Task.isCancelled { throw .cancelled }
        let promise = Promise<Value>()
        let core = adapter.core
        let link = link.id
        let operation = try core.turn { (state) throws(BluetoothError) in try start(&state, link, promise) }
        return try await promise.value { core.turn { $0.cancel(operation, on: link) } }
    }
}
