// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// Everything that a `BlueZRadio` knows and does, on the D-Bus event loop.
///
/// Messages are handled in the order of the bus, each to its end: a reply never overtakes the signal before it.
actor RadioCore {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    enum ViewState {
        case none
        case loading
        case loaded
        case failed(BluetoothError)
    }

    /// What follows bluetoothd on one connection to the bus.
    struct ServiceWatch {
        enum Step {
            case off
            case asked
            case on
        }

        /// Its signals.
        var signals = Step.off
        /// The owner of its name.
        var owner = Step.off

        var isComplete: Bool { signals == .on && owner == .on }
    }

    let address: BusAddress
    let choice: AdapterChoice
    let readBlock: @Sendable (String) -> RadioBlock?

    // The bus (RadioCore+Bus).
    var connector: BusConnector?
    var connection: DBusConnection?
    var busError: DBusError?
    /// The unique name of bluetoothd.
    var owner: String?
    var watch = ServiceWatch()
    var hadService = false
    var view = ObjectView()
    var viewState = ViewState.none
    /// Counts the lives of the view: what was asked in an earlier one is void.
    var generation: UInt64 = 0
    /// The `generation` that asks for the view now.
    var viewRequest: UInt64?
    /// Before a view that failed is asked for again.
    var viewPause = GrowingPause(Limits.askAgain)
    var viewTimer: TimerToken?
    var readyWaiters: [UInt64] = []
    /// Calls of the contract under way.
    var operations = 0
    var lingerTimer: TimerToken?

    // The adapter (RadioCore+Adapter).
    /// The adapter that is chosen, powered or not; and the same if it can be used.
    var chosenAdapter: ObjectPath?
    var usableAdapter: ObjectPath?
    var statusStreams: [UInt64: AsyncStream<AdapterStatus>.Continuation] = [:]
    var lastStatus: AdapterStatus?

    /// Where notifications have to be apart (RadioCore+Requests): whether one is under way, and who waits for its turn.
    var isNotifying = false
    var waitingNotifications: [UInt64] = []

    // Scans (RadioCore+Scan).
    var scans: [UInt64: ScanState] = [:]
    var discovery = DiscoveryMachine()
    /// Whether nobody else discovered when our discovery began.
    var discoversAlone = false
    var discoveryWaiters: [UInt64] = []
    var discoveryPause = GrowingPause(Limits.discoverAgain)
    var discoveryTimer: TimerToken?

    // Links (RadioCore+Link).
    var links: [UInt64: Link] = [:]
    var activeLinks: [ObjectPath: UInt64] = [:]

    /// Answers to reads and writes, until their tasks have taken them.
    var results: [UInt64: Result<[DBusValue], DBusError>] = [:]

    // Sessions (RadioCore+Serve).
    var sessions: [UInt64: Serving] = [:]
    /// Connection attempts that need the advertising to be paused (rule 24).
    var advertisingHolds = 0

    private var openRequests: [UInt64: Int] = [:]
    private var waiters: [UInt64: Waiter] = [:]
    private var lastID: UInt64 = 0

    init(
        address: BusAddress,
        adapter: String?,
        loop: EventLoop = .shared,
        readBlock: @escaping @Sendable (String) -> RadioBlock? = { RadioBlock.read(adapter: $0) }
    ) {
        self.address = address
        self.loop = loop
        choice = AdapterChoice(wanted: adapter)
        self.readBlock = readBlock
    }

    deinit {
        connector?.stop()
        for stream in statusStreams.values { stream.finish() }
    }

    /// Names scans, links, sessions, requests and waiters of this radio.
    func newID() -> UInt64 {
        lastID += 1
        return lastID
    }

    // MARK: Waiting

    enum Waiter {
        /// Its id is known to whoever wakes it; its task has not come to its suspension yet.
        case announced
        /// Woken before that.
        case woken(BluetoothError?)
        case waiting(CheckedContinuation<BluetoothError?, Never>, TimerToken?)
    }

    /// Names a wait that is to come. From now on `wake` finds it.
    ///
    /// Not before `wait` suspends: an `await` can give up the loop on its way there, even to a function of the same
    /// actor (seen with Swift 6.3.1, where the loop is a task executor too), and a wake in between would be lost.
    func newWaiter() -> UInt64 {
        let id = newID()
        waiters[id] = .announced
        return id
    }

    /// A wait that does not come after all.
    func forgetWaiter(_ id: UInt64) { waiters[id] = nil }

    /// Suspends until `wake` with this id, the time-out, or the task's cancellation.
    ///
    /// - Returns: What `wake` was given; `timedOut` or `cancelled`.
    func wait(_ id: UInt64, timeout: Duration?, cancellable: Bool = true) async -> BluetoothError? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                assertIsolated()
                if case .woken(let error) = waiters[id] {
                    waiters[id] = nil
                    continuation.resume(returning: error)
                    return
                }
                if cancellable, Task.isCancelled {
                    waiters[id] = nil
                    continuation.resume(returning: .cancelled)
                    return
                }
                let timer = timeout.map { timeout in
                    loop.schedule(after: timeout) { [weak self] in
                        self?.assumeIsolated { core in
                            _ = core.wake(id, with: BlueZFailure.noAnswer)
                        }
                    }
                }
                waiters[id] = .waiting(continuation, timer)
            }
        } onCancel: {
            guard cancellable else { return }
            loop.execute { [weak self] in
                self?.assumeIsolated { core in
                    _ = core.wake(id, with: .cancelled)
                }
            }
        }
    }

    /// - Returns: Whether somebody was waiting.
    @discardableResult
    func wake(_ id: UInt64, with error: BluetoothError? = nil) -> Bool {
        switch waiters[id] {
        case .announced:
            waiters[id] = .woken(error)
        case .waiting(let continuation, let timer):
            waiters[id] = nil
            timer?.cancel()
            continuation.resume(returning: error)
        case .woken, nil:
            return false
        }
        return true
    }

    func wake(_ ids: inout [UInt64], with error: BluetoothError? = nil) {
        let woken = ids
        ids = []
        for id in woken { wake(id, with: error) }
    }

    func isWaiting(_ id: UInt64) -> Bool {
        switch waiters[id] {
        case .announced, .waiting: true
        case .woken, nil: false
        }
    }

    // MARK: Calling

    /// Calls bluetoothd; the answer is handled on the loop, in the order of the bus.
    func send(
        _ call: DBusCall,
        _ answered: @escaping @Sendable (isolated RadioCore, Result<[DBusValue], DBusError>) -> Void
    ) {
        guard let connection else {
            let error = busError ?? DBusError(.disconnected, "there is no connection to the bus")
            loop.execute { [weak self] in self?.assumeIsolated { answered($0, .failure(error)) } }
            return
        }
        connection.send(call: call) { [weak self] result in
            self?.assumeIsolated { answered($0, result) }
        }
    }

    /// The same for a task. It always waits for the answer: what the call has begun at bluetoothd is known to be over.
    func request(_ call: DBusCall) async -> Result<[DBusValue], DBusError> {
        guard let connection else {
            return .failure(busError ?? DBusError(.disconnected, "there is no connection to the bus"))
        }
        return await withCheckedContinuation { continuation in
            connection.send(call: call) { continuation.resume(returning: $0) }
        }
    }

    /// Sends all, then waits for all the answers.
    func requestAll(_ calls: [DBusCall]) async {
        guard !calls.isEmpty, connection != nil else { return }
        let id = newWaiter()
        openRequests[id] = calls.count
        for call in calls {
            send(call) { core, _ in
                let left = (core.openRequests[id] ?? 1) - 1
                core.openRequests[id] = left > 0 ? left : nil
                if left <= 0 { core.wake(id) }
            }
        }
        _ = await wait(id, timeout: Limits.stop + .seconds(1), cancellable: false)
        openRequests[id] = nil
    }
}
