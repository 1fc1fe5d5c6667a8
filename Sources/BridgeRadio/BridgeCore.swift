// SPDX-License-Identifier: MIT

import BluetoothLE

/// The client's half of a bridge: the connection's life, and what lives beyond one connection.
actor BridgeCore {
    /// A connection that has been greeted.
    struct Wire: Sendable {
        let socket: LineSocket
        /// Whether the bridge speaks the extension.
        let isExtended: Bool
    }

    enum Phase {
        case idle
        case connecting
        case connected(Wire)
        /// The next attempt comes by itself.
        case failed(BluetoothError)
    }

    private let endpoint: BridgeEndpoint
    private let opening: @Sendable () async -> Result<BridgeOpening.Greeting, BluetoothError>
    private let numbers = Locked(0)
    private let scope = Locked(NotificationScope.allSubscribers)

    var phase = Phase.idle
    private var phaseWaiters: [Int: CheckedContinuation<Void, Never>] = [:]
    private var runner: Task<Void, Never>?
    private var users = 0
    private var idling: Task<Void, Never>?
    private var isShutDown = false

    var status = AdapterStatus(.unknown)
    private var statusReaders: [Int: AsyncStream<AdapterStatus>.Continuation] = [:]
    private var endedStatusReaders: Set<Int> = []

    var pending: [String: PendingCall] = [:]
    var scans: [Int: LocalScan] = [:]
    var scanned = BridgedScan.nothing
    /// Tells the bridge what to scan for, until it knows.
    var scanTelling: Task<Void, Never>?
    /// The call under way.
    var scanCall: Task<Result<Void, BluetoothError>, Never>?
    var scanRetry: Task<Void, Never>?
    var links: [String: BridgeLink] = [:]
    var sessions: [String: BridgeSession] = [:]

    init(_ endpoint: BridgeEndpoint, token: String?) {
        self.init(endpoint, opening: { await BridgeOpening(endpoint: endpoint, token: token).greeting() })
    }

    /// - Parameter opening: How a connection comes about.
    init(
        _ endpoint: BridgeEndpoint,
        opening: @escaping @Sendable () async -> Result<BridgeOpening.Greeting, BluetoothError>
    ) {
        self.endpoint = endpoint
        self.opening = opening
    }

    nonisolated func newNumber() -> Int {
        numbers.withLock { number in
            number += 1
            return number
        }
    }

    nonisolated var notificationScope: NotificationScope { scope.withLock { $0 } }

    // MARK: - Users

    /// Somebody needs the connection.
    func retain() {
        users += 1
        idling?.cancel()
        idling = nil
        guard runner == nil, !isShutDown else { return }
        phase = .connecting
        runner = Task { await self.run() }
    }

    func release() {
        users -= 1
        guard users <= 0, runner != nil else { return }
        idling?.cancel()
        // Kept for a while: the bridge forgets with it which devices have been heard.
        idling = Task {
            try? await Task.sleep(for: BridgeLimits.idle)
            if !Task.isCancelled { self.closeIfIdle() }
        }
    }

    private func closeIfIdle() {
        guard users <= 0 else { return }
        close()
    }

    private func close() {
        idling?.cancel()
        idling = nil
        runner?.cancel()
        runner = nil
        if case .connected(let wire) = phase { wire.socket.close() }
        phase = .idle
        scanRetry?.cancel()
        lost(.bridgeClosed)
        wakePhaseWaiters()
    }

    func abandon() { if users <= 0 { close() } }

    func shutDown() async {
        isShutDown = true
        await stopScans(Array(scans.keys))
        for session in Array(sessions.values) { await session.stop() }
        for link in Array(links.values) { await link.disconnect() }
        close()
        for reader in statusReaders.values { reader.finish() }
    }

    // MARK: - The connection's life

    /// The connection, once the bridge has greeted.
    ///
    /// - Parameter isCancellable: Whether a cancelled task waits no longer. The attempt goes on: others may need it.
    /// - Throws: why there is none, after one attempt at least.
    func wire(isCancellable: Bool = true) async throws(BluetoothError) -> Wire {
        while true {
            switch phase {
            case .connected(let wire): return wire
            case .failed(let error): throw error
            case .idle where isShutDown || runner == nil:
                throw BluetoothError(.serviceUnavailable, "the radio has been shut down")
            case .connecting, .idle:
                if !isCancellable {
                    await phaseChange(newNumber())
                } else if Task.isCancelled {
                    throw .cancelled
                } else {
                    await cancellablePhaseChange()
                }
            }
        }
    }

    private func phaseChange(_ waiter: Int) async {
        await withCheckedContinuation { phaseWaiters[waiter] = $0 }
    }

    private func cancellablePhaseChange() async {
        let waiter = newNumber()
        await withTaskCancellationHandler {
            await phaseChange(waiter)
        } onCancel: {
            // Comes to the actor after the wait has begun.
            Task { await self.wakePhaseWaiter(waiter) }
        }
    }

    private func wakePhaseWaiter(_ waiter: Int) { phaseWaiters.removeValue(forKey: waiter)?.resume() }

    private func enter(_ new: Phase) {
        phase = new
        wakePhaseWaiters()
    }

    private func wakePhaseWaiters() {
        let waiters = phaseWaiters.values
        phaseWaiters = [:]
        for waiter in waiters { waiter.resume() }
    }

    private func run() async {
        var pause = GrowingPause(BridgeLimits.reconnect)
        while !Task.isCancelled {
            let result = await opening()
            // The phase may be another runner's by now.
            if Task.isCancelled {
                if case .success(let greeting) = result { greeting.wire.socket.close() }
                return
            }
            let failure: BluetoothError
            switch result {
            case .success(let greeting):
                scope.withLock { $0 = greeting.scope }
                note(greeting.status)
                enter(.connected(greeting.wire))
                pause.reset()
                resume()
                while let input = await greeting.wire.socket.next(), !Task.isCancelled {
                    guard case .line(let line) = input else { break }
                    receive(line)
                }
                greeting.wire.socket.close()
                failure = goodbye ?? Self.lostConnection(endpoint)
            case .failure(let error):
                failure = error
            }
            if Task.isCancelled { return }
            goodbye = nil
            enter(.failed(failure))
            lost(failure)
            try? await Task.sleep(for: pause.next())
        }
    }

    /// What the bridge said before it hung up.
    var goodbye: BluetoothError?

    private static func lostConnection(_ endpoint: BridgeEndpoint) -> BluetoothError {
        BluetoothError(
            .resetting, "the connection to the bridge at \(endpoint) was lost",
            advice: "Does the bridge still run? It is tried again.")
    }

    /// The connection is gone, and with it all links and whatever waits for an answer.
    private func lost(_ error: BluetoothError) {
        let calls = pending
        pending = [:]
        for call in calls.values { call.finish(.failure(call.connection == nil ? error : .linkLost)) }
        for link in Array(links.values) { linkEnded(link.id, .adapterLost) }
        scanned = .nothing
        let state: AdapterState = error.code == .resetting ? .resetting : .unsupported
        if case .idle = phase { status = AdapterStatus(.unknown) } else { note(AdapterStatus(state, reason: error)) }
        if case .failed = phase { interruptSessions(error) }
    }

    /// A new connection: what was under way goes on.
    private func resume() {
        if status.state == .poweredOn { resumeScans() }
        resumeSessions()
    }

    // MARK: - The adapter's state

    func note(_ new: AdapterStatus) {
        var new = new
        // The contract wants a name, and a bridge need not tell one.
        if new.state == .poweredOn, new.adapter == nil { new.adapter = "bridge" }
        if new.state != .poweredOn, new.state != .unknown, new.reason == nil { new.reason = new.bridgeError }
        guard new != status else { return }
        let wasOn = status.state == .poweredOn
        status = new
        for reader in statusReaders.values { reader.yield(new) }
        let isOn = new.state == .poweredOn
        if wasOn, !isOn { pauseScans(new.bridgeError) }
        if !wasOn, isOn, case .connected = phase {
            resumeScans()
            resumePlainSessions()
        }
        if wasOn, !isOn { interruptPlainSessions(new.bridgeError) }
    }

    func addStatusReader(_ id: Int, _ reader: AsyncStream<AdapterStatus>.Continuation) {
        guard endedStatusReaders.remove(id) == nil else { return }
        guard !isShutDown else { return reader.finish() }
        statusReaders[id] = reader
        reader.yield(status)
        retain()
    }

    func removeStatusReader(_ id: Int) {
        // The reader can be gone before it was known.
        if statusReaders.removeValue(forKey: id) == nil {
            if !isShutDown { endedStatusReaders.insert(id) }
        } else {
            release()
        }
    }
}

extension AdapterStatus {
    /// Why the bridge's adapter cannot be used. Where the bridge gives no reason this says whose adapter it is, which
    /// `error`, that every radio has, does not.
    var bridgeError: BluetoothError {
        if let reason { return reason }
        switch state {
        case .unsupported: return BluetoothError(.adapterNotFound, "the bridge has no Bluetooth adapter")
        case .unauthorized: return BluetoothError(.unauthorized, "the bridge may not use Bluetooth")
        case .resetting: return BluetoothError(.resetting, "the bridge's Bluetooth service restarts")
        default: return BluetoothError(.poweredOff, "the bridge's Bluetooth adapter is off")
        }
    }
}

extension BluetoothError {
    static let bridgeClosed = BluetoothError(.serviceUnavailable, "the connection to the bridge has been closed")
    static let linkLost = BluetoothError(.disconnected, "the link is down")
}
