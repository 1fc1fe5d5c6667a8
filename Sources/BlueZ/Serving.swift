// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// One session of the contract: what we serve and advertise. Lives on the core's loop only.
final class Serving {
    let id: UInt64
    let services: [LocalService]
    let request: AdvertisementRequest?
    let queue = SessionEventQueue()
    /// Unique on our connection, and nobody else's.
    let root: ObjectPath
    var characteristics: [LocalCharacteristicID: ObjectPath] = [:]

    // What is registered.
    var isExported = false
    var isApplicationRegistered = false
    /// The adapter with which bluetoothd has the application: also while that is off, or another one is in use.
    var applicationAdapter: ObjectPath?
    var advertising: AdvertisingMachine
    var advertisement: ObjectPath?
    var advertisementSerial = 0
    /// Counts the adapter's and bluetoothd's lives: what was registered in an earlier one is gone.
    var epoch = 0

    // What is going on.
    var isReconciling = false
    var isAgain = false
    var isRefreshWanted = false
    var isStopping = false
    var refreshTimer: TimerToken?
    var retryTimer: TimerToken?
    var retryPause = GrowingPause(Limits.registerAgain)
    /// `serve` waits for the first outcome here.
    var firstOutcome: UInt64?
    var idleWaiters: [UInt64] = []
    /// The last `serving` that was told; `nil` before the first, and while interrupted.
    var told: PeripheralEvent?
    var isInterrupted = false

    // Who is there.
    var centrals: Set<ObjectPath> = []
    var subscriptions: [LocalCharacteristicID: Subscribers] = [:]
    var pending: [RequestID: PendingRequest] = [:]

    struct Subscribers {
        /// Between `StartNotify` or `AcquireNotify` and `StopNotify`.
        var isNotifying = false
        var known: Set<ObjectPath> = []
    }

    struct PendingRequest {
        let call: MethodCall
        let isRead: Bool
        let timer: TimerToken
    }

    init(id: UInt64, services: [LocalService], request: AdvertisementRequest?, root: ObjectPath) {
        self.id = id
        self.services = services
        self.request = request
        self.root = root
        advertising = AdvertisingMachine(
            interval: request?.interval != nil, name: request?.localName.map { !$0.isEmpty } ?? false)
    }

    func tell(_ event: PeripheralEvent) { _ = queue.offer(event) }
}
