// SPDX-License-Identifier: MIT

import BluetoothLE

/// The client's half of a bridge: the connection's life, and what lives beyond one connection.
actor BridgeCore {
    /// A connection that has been greeted.
    struct Wire {
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

    let endpoint: BridgeEndpoint
    private let token: String?
    private let numbers = Locked(0)
    private let scope = Locked(NotificationScope.allSubscribers)

    var phase = Phase.idle
    private var phaseWaiters: [CheckedContinuation<Void, Never>] = []
    private var runner: Task<Void, Never>?
    private var users = 0
    private var idling: Task<Void, Never>?
    private var isShutDown = false

    var status = AdapterStatus(.unknown)
    private var statusReaders: [Int: AsyncStream<AdapterStatus>.Continuation] = [:]
    private var endedStatusReaders: Set<Int> = []

    var pending: [String: PendingCall] = [:]
    var scans: [Int: LocalScan] = [:]
    /// What the bridge was last told to scan for; `nil`: nothing.
    var scanned: Set<BluetoothUUID>?
    var links: [String: BridgeLink] = [:]
    var sessions: [String: BridgeSession] = [:]

    init(_ endpoint: BridgeEndpoint, token: String?) {
        self.endpoint = endpoint
        self.token = token
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
        lost(BluetoothError(.serviceUnavailable, "the connection to the bridge has been closed"))
        wakePhaseWaiters()
    }

    func abandon() { if users <= 0 { close() } }

    func shutDown() async {
        isShutDown = true
        for id in Array(scans.keys) { await stopScan(id) }
        for session in Array(sessions.values) { await session.stop() }
        for link in Array(links.values) { await link.disconnect() }
        close()
        for reader in statusReaders.values { reader.finish() }
    }

    // MARK: - The connection's life

    /// The connection, once the bridge has greeted.
    ///
    /// - Throws: why there is none, after one attempt at least.
    func wire() async throws(BluetoothError) -> Wire {
        while true {
            switch phase {
            case .connected(let wire): return wire
            case .failed(let error): throw error
            case .idle where isShutDown || runner == nil:
                throw BluetoothError(.serviceUnavailable, "the radio has been shut down")
            case .connecting, .idle:
                await withCheckedContinuation { phaseWaiters.append($0) }
            }
        }
    }

    private func enter(_ new: Phase) {
        phase = new
        wakePhaseWaiters()
    }

    private func wakePhaseWaiters() {
        let waiters = phaseWaiters
        phaseWaiters = []
        for waiter in waiters { waiter.resume() }
    }

    private func run() async {
        var pause = BridgeLimits.reconnect.first
        while !Task.isCancelled {
            let failure: BluetoothError
            switch await open() {
            case .success(let wire):
                enter(.connected(wire))
                pause = BridgeLimits.reconnect.first
                resume()
                while let input = await wire.socket.next() {
                    guard case .line(let line) = input else { break }
                    receive(line)
                }
                wire.socket.close()
                failure = goodbye ?? Self.lostConnection(endpoint)
            case .failure(let error):
                failure = error
            }
            if Task.isCancelled { return }
            goodbye = nil
            enter(.failed(failure))
            lost(failure)
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, BridgeLimits.reconnect.last)
        }
    }

    /// What the bridge said before it hung up.
    var goodbye: BluetoothError?

    private static func lostConnection(_ endpoint: BridgeEndpoint) -> BluetoothError {
        BluetoothError(
            .resetting, "the connection to the bridge at \(endpoint) was lost",
            advice: "Does the bridge still run? It is tried again.")
    }

    /// Connects, waits for the greeting, and asks for the extension.
    private func open() async -> Result<Wire, BluetoothError> {
        let descriptor: Int32
        switch await SocketConnector.connect(to: endpoint) {
        case .success(let opened): descriptor = opened
        case .failure(let failure):
            return .failure(
                BluetoothError(
                    .serviceUnavailable, "the bridge at \(endpoint) cannot be reached: \(failure.words)",
                    advice: "Start one where the Bluetooth adapter is: `nearby bridge`. Is the address right?"))
        }
        let socket = LineSocket(descriptor: descriptor)
        let impatience = Task {
            try? await Task.sleep(for: BridgeLimits.greeting)
            if !Task.isCancelled { socket.close() }
        }
        let result = await greet(socket)
        impatience.cancel()
        if case .failure = result { socket.close() }
        return result
    }

    private func greet(_ socket: LineSocket) async -> Result<Wire, BluetoothError> {
        var isExtended = false
        var latest = AdapterStatus(.unknown)
        while true {
            guard case .line(let line)? = await socket.next() else { return .failure(noBridge) }
            let message: BridgeMessage
            do throws(BridgeMessageError) {
                message = try BridgeMessage(line: line)
            } catch {
                if error.code == .unknown { continue }
                return .failure(noBridge)
            }
            switch message.event {
            case .bridgeReady(let version, _, let status, let extensionVersion, let wantsToken):
                guard version == BridgeLimits.protocolVersion else {
                    return .failure(
                        BluetoothError(.notSupported, "the bridge at \(endpoint) speaks version \(version)"))
                }
                if wantsToken, token == nil {
                    return .failure(
                        BluetoothError(
                            .unauthorized, "the bridge at \(endpoint) wants a token",
                            advice: "Ask whoever runs it, and pass it on."))
                }
                latest = status
                isExtended = extensionVersion != nil
                guard isExtended else {
                    note(latest)
                    scope.withLock { $0 = .central }
                    return .success(Wire(socket: socket, isExtended: false))
                }
                let hello = BridgeCommand.hello(version: BridgeLimits.extensionVersion, token: wantsToken ? token : nil)
                socket.send(BridgeRequest(hello, id: "hello").line())
            case .bluetoothStateChanged(let status):
                // Told when the bridge has answered: before, it leaves out why.
                latest = status
            case .done(_, let isBroadcast):
                note(latest)
                scope.withLock { $0 = isBroadcast == false ? .central : .allSubscribers }
                return .success(Wire(socket: socket, isExtended: isExtended))
            case .error(let error, _):
                return .failure(error)
            default:
                continue
            }
        }
    }

    private var noBridge: BluetoothError {
        BluetoothError(
            .serviceUnavailable, "what answers at \(endpoint) is no bridge",
            advice: "Is the port right? A bridge listens on \(BridgeEndpoint.defaultPort), by an older text on 7788.")
    }

    /// The connection is gone, and with it all links and whatever waits for an answer.
    private func lost(_ error: BluetoothError) {
        let calls = pending
        pending = [:]
        for call in calls.values { call.finish(.failure(call.connection == nil ? error : .linkLost)) }
        for link in Array(links.values) { linkEnded(link.id, .adapterLost) }
        scanned = nil
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
        if new.state != .poweredOn, new.state != .unknown, new.reason == nil { new.reason = new.error }
        guard new != status else { return }
        let wasOn = status.state == .poweredOn
        status = new
        for reader in statusReaders.values { reader.yield(new) }
        let isOn = new.state == .poweredOn
        if wasOn, !isOn { pauseScans(new.error) }
        if !wasOn, isOn, case .connected = phase {
            resumeScans()
            resumePlainSessions()
        }
        if wasOn, !isOn { interruptPlainSessions(new.error) }
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
    /// Why the adapter cannot be used.
    var error: BluetoothError {
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
    static let linkLost = BluetoothError(.disconnected, "the link is down")
}
