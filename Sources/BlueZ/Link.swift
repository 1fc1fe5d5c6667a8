// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// One link to a peer, from the attempt to its end. Lives on the core's loop only.
final class Link {
    enum Phase: Equatable {
        case connecting
        case up
        /// We are taking it down.
        case closing
        case down(DisconnectReason)
    }

    enum ConnectAnswer {
        case promised, refused
    }

    let id: UInt64
    let path: ObjectPath
    var phase = Phase.connecting
    /// Whether we made it; another program's, or the peer's own, is only used.
    var isOurs = true
    /// What bluetoothd's signal said (5.83 and later).
    var toldReason: DisconnectReason?
    /// What operations on a dead link end with.
    var error: BluetoothError?

    var connectWaiter: UInt64?
    /// What `Connect` has answered. A link that it promised may still have to be shown (`Connected`).
    var connectAnswer: ConnectAnswer?
    var downWaiters: [UInt64] = []
    var resolvedWaiters: [UInt64] = []
    var attributeWaiters: [UInt64] = []
    var operationWaiters: Set<UInt64> = []
    var characteristics: [ObjectPath: CharacteristicUse] = [:]

    init(id: UInt64, path: ObjectPath) {
        self.id = id
        self.path = path
    }
}

/// What we do with one of the peer's characteristics.
final class CharacteristicUse {
    enum Notify {
        case off
        case starting([UInt64])
        case on
    }

    /// Whether a read or write is under way at bluetoothd: a second would be answered `InProgress` (rule 22).
    var isBusy = false
    var queue: [UInt64] = []
    /// Whether it is a read, which is echoed as a change of `Value`.
    var isReading = false
    var held: [[UInt8]] = []
    var notify = Notify.off
    var subscribers: [UInt64: AsyncStream<[UInt8]>.Continuation] = [:]

    func deliver(_ value: [UInt8]) {
        for subscriber in subscribers.values { subscriber.yield(value) }
    }

    /// A change of `Value`: a notification, unless it turns out to be the echo of our read.
    func changed(_ value: [UInt8]) {
        guard !subscribers.isEmpty else { return }
        guard isReading else { return deliver(value) }
        if held.count >= Limits.heldValues { deliver(held.removeFirst()) }
        held.append(value)
    }

    /// bluetoothd emits the echo before it answers (src/gatt-client.c, read_cb): the newest change that equals the
    /// answer is it.
    func readAnswered(_ value: [UInt8]?) {
        isReading = false
        if let value, let echo = held.lastIndex(of: value) { held.remove(at: echo) }
        for value in held { deliver(value) }
        held = []
    }

    func finish() {
        for subscriber in subscribers.values { subscriber.finish() }
        subscribers = [:]
    }
}
