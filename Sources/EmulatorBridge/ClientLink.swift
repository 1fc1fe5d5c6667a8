// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

/// One link of a client to a device. Used by the client's session only, but for taking it down.
final class ClientLink: Sendable {
    /// A characteristic as commands name it.
    struct Key: Hashable, Sendable {
        var service: BluetoothUUID
        var characteristic: BluetoothUUID
        var id: String?

        init(_ attribute: RemoteAttribute) {
            service = attribute.service
            characteristic = attribute.characteristic
            id = attribute.id
        }
    }

    struct Wish: Sendable {
        let request: BridgeRequest
        let operation: Operation
    }

    struct Reading: Sendable {
        let subscription: Subscription
        let reader: Task<Void, Never>
    }

    struct State: Sendable {
        var services: [RemoteService]?
        /// By the characteristic's id.
        var readings: [String: Reading] = [:]
        /// What `setNotify` of the plain protocol has asked for and nobody has done yet. Each is in the lane.
        var wanted: [Key: Wish] = [:]
        /// A write has waited for its `setNotify` once.
        var waited: Set<Key> = []
        /// The ids of the disconnects under way; `nil`: there is none.
        var disconnects: [String]?
        /// Commands from now on are of no use.
        var isClosing = false
    }

    let id: String
    let address: String
    let connection: any PeripheralConnection
    let lane = Lane()
    let state = Locked(State())

    init(id: String, address: String, connection: any PeripheralConnection) {
        self.id = id
        self.address = address
        self.connection = connection
    }

    /// The operation is over, done or not.
    func withdraw(_ operation: Operation, _ key: Key) {
        state.withLock { if $0.wanted[key]?.operation === operation { $0.wanted[key] = nil } }
    }

    /// Ends what is in the lane with the link, and takes the link down.
    func takeDown() async {
        state.withLock { $0.isClosing = true }
        lane.close()
        await connection.disconnect()
        await lane.end()
    }

    /// Waits for what was asked for before, but not for long.
    func settle() async {
        state.withLock { $0.isClosing = true }
        lane.close()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in await lane.end() }
            group.addTask { try? await Task.sleep(for: Limits.completion) }
            await group.next()
            group.cancelAll()
            // Whoever waits for the lane cannot be cancelled; taking the link down ends the wait.
            await connection.disconnect()
        }
    }
}
