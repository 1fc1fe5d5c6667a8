// SPDX-License-Identifier: MIT

import BluetoothLE
import BridgeRadio

/// One client of the bridge, with all that it has: its scan, its links, its advertisements.
///
/// Commands are taken in the order of their lines, and done in lanes: a link's one after another, and no link waits for
/// another. When the client goes, everything is taken down before `run` returns.
actor ClientSession {
    let number: Int
    let socket: LineSocket
    let radio: any Radio
    let configuration: BridgeConfiguration
    /// `nil` where the client has an adapter of its own.
    let claims: Claims?

    /// Asked for with `hello`: commands are acknowledged and fail at once, and requests of centrals are the client's.
    var isExtended = false
    private var isAdmitted: Bool
    var isEnding = false
    private var badLines = 0
    private var hasSentLine = false
    /// Why the bridge hung up.
    private var ending: BluetoothError?

    var status = AdapterStatus(.unknown)
    /// Counts changes of the status.
    var statusVersion = 0
    private var isGreeted = false
    private var statusWaiters: [Int: CheckedContinuation<Void, Never>] = [:]
    private var nextNumber = 0

    /// By the command's id, for `cancel`.
    var operations: [String: Operation] = [:]
    /// Connects under way.
    var connecting = 0
    /// Every operation under way that is in no lane: connects, and one disconnect of each link.
    var loose: [Int: Task<Void, Never>] = [:]

    let scanLane = Lane()
    var scanOperation: Operation?
    var scan: RunningScan?
    var devices = KnownDevices()
    /// Addresses of devices that went with the adapter.
    var forgotten: Set<String> = []

    var links: [String: ClientLink] = [:]

    let serveLane = Lane()
    /// The newest start of each advertisement that has not ended, by the client's name for it.
    var serveOperations: [String: Operation] = [:]
    var served: [String: ServedSession] = [:]
    var requests: [Int: (session: String, id: RequestID)] = [:]
    var requestOrder: [Int] = []

    init(
        number: Int,
        socket: LineSocket,
        radio: any Radio,
        configuration: BridgeConfiguration,
        claims: Claims?
    ) {
        self.number = number
        self.socket = socket
        self.radio = radio
        self.configuration = configuration
        self.claims = claims
        isAdmitted = configuration.token == nil
    }

    func take() -> Int {
        nextNumber += 1
        return nextNumber
    }

    /// Serves the client until it goes or is cut off.
    ///
    /// - Returns: why it was cut off.
    func run() async -> BluetoothError? {
        let statuses = radio.adapterStatuses()
        let watcher = Task { [weak self] in
            for await status in statuses { await self?.note(status) }
        }
        let patience = Task { [weak self] in
            try? await Task.sleep(for: Limits.firstStatus)
            await self?.greet()
        }
        while !isGreeted { await statusChange() }
        patience.cancel()
        var admission: Task<Void, Never>?
        if !isAdmitted {
            admission = Task { [weak self] in
                try? await Task.sleep(for: Limits.admission)
                if !Task.isCancelled { await self?.refuseUnlessAdmitted() }
            }
        }
        while let input = await socket.next() { await handle(input) }
        admission?.cancel()
        watcher.cancel()
        await cleanUp()
        socket.close()
        if ending == nil, socket.wasOverrun {
            ending = BluetoothError(.limitExceeded, "the client did not read what it was sent")
        }
        return ending
    }

    // MARK: - Telling

    /// A client that does not read is told so and cut off; what may be left out is, before that.
    func send(_ event: BridgeEvent, id: String? = nil, isDispensable: Bool = false) {
        socket.send(BridgeMessage(event, id: id).line(isExtended: isExtended), isDispensable: isDispensable)
    }

    /// What only a client of the extension understands.
    func tell(_ event: BridgeEvent, id: String? = nil) {
        if isExtended { send(event, id: id) }
    }

    /// The answer to a command that the protocol has none for.
    func acknowledge(_ id: String?, attMTU: Int? = nil) {
        if let id { tell(.done(attMTU: attMTU, isBroadcast: nil), id: id) }
    }

    func fail(_ request: BridgeRequest, _ error: BluetoothError) {
        switch request.command {
        case .startScan:
            send(.scanFailed(error), id: request.id)
        case .connect(let address, _):
            send(.connectionFailed(address: address, error), id: request.id)
        default:
            send(.error(error, FailureContext(request.command)), id: request.id)
        }
    }

    func hangUp(_ error: BluetoothError) {
        if ending == nil { ending = error }
        socket.close(last: BridgeMessage(.error(error, FailureContext())).line())
    }

    // MARK: - The adapter

    private func note(_ new: AdapterStatus) {
        guard new != status || !isGreeted else { return }
        let hadBeen = status
        status = new
        statusVersion += 1
        if isGreeted {
            if hadBeen != new { send(.bluetoothStateChanged(new)) }
            adapterChanged()
        } else if new.state != .unknown {
            greet()
        }
        wakeStatusWaiters()
    }

    private func greet() {
        guard !isGreeted else { return }
        isGreeted = true
        send(
            .bridgeReady(
                version: BridgeLimits.protocolVersion,
                platform: configuration.platform,
                status: status,
                extensionVersion: configuration.offersExtension ? BridgeLimits.extensionVersion : nil,
                wantsToken: !isAdmitted
            )
        )
        wakeStatusWaiters()
    }

    private func wakeStatusWaiters() {
        let waiters = statusWaiters.values
        statusWaiters = [:]
        for waiter in waiters { waiter.resume() }
    }

    /// Returns at the next change of the adapter's status, or of the greeting, or when the task is cancelled.
    func statusChange() async {
        let waiter = take()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume() }
                statusWaiters[waiter] = continuation
            }
        } onCancel: {
            Task { await self.wakeStatusWaiter(waiter) }
        }
    }

    private func wakeStatusWaiter(_ waiter: Int) {
        statusWaiters.removeValue(forKey: waiter)?.resume()
    }

    /// Does something that needs the adapter. Where the client does not speak the extension, it waits for an adapter
    /// that is away.
    func whenReady<Value: Sendable>(
        _ body: @Sendable () async throws(BluetoothError) -> Value
    ) async throws(BluetoothError) -> Value {
        while true {
            let version = statusVersion
            do throws(BluetoothError) {
                return try await body()
            } catch {
                guard !isExtended, error.isAbsence else { throw error }
            }
            // Whatever is said of the adapter meanwhile, the attempt failed: another one waits for a change.
            while statusVersion == version || status.state != .poweredOn {
                if Task.isCancelled || isEnding { throw .cancelled }
                await statusChange()
            }
        }
    }

    // MARK: - Commands

    private func handle(_ input: LineSocket.Input) async {
        guard case .line(let line) = input else {
            return hangUp(
                BluetoothError(.limitExceeded, "a line is longer than \(BridgeLimits.lineBytes) bytes"))
        }
        let request: BridgeRequest
        do throws(BridgeMessageError) {
            request = try BridgeRequest(line: line)
        } catch {
            return refuse(error)
        }
        hasSentLine = true
        badLines = 0
        if case .hello(_, let token) = request.command { return hello(request, token) }
        guard isAdmitted else { return refuseUnlessAdmitted() }
        await room(for: request.command)
        perform(request)
    }

    /// What has no answer cannot be waited for by the client: where the radio is slower than it, its lines are read later.
    private func room(for command: BridgeCommand) async {
        let lane: Lane? =
            switch command {
            case .sendNotification(_, _, _, let session): served[session]?.notifications
            case .respond(let number, _): requests[number].flatMap { served[$0.session] }?.notifications
            case .writeCharacteristic(let attribute, _, withResponse: false): links[attribute.connection]?.lane
            default: nil
            }
        guard let lane, lane.isFull else { return }
        // A client that is gone is cleaned up after, however slow the radio is: that ends what is in the lane, and what
        // is still to be read would come to nothing. Its end is only known once it has arrived (`LineSocket.ended`).
        let watch = Task { [socket] in
            await socket.ended()
            guard !Task.isCancelled else { return }
            socket.close()
            lane.abandon()
        }
        await lane.room()
        watch.cancel()
    }

    private func refuse(_ error: BridgeMessageError) {
        if error.code == .notJSON {
            badLines += 1
            // A web page can make a browser send lines to a port of this machine. What begins like that is no client.
            guard hasSentLine else {
                return hangUp(BluetoothError(.invalidArgument, error.message, advice: "See docs/bridge.md."))
            }
            guard badLines <= Limits.badLines else {
                return hangUp(BluetoothError(.limitExceeded, "more than \(Limits.badLines) lines were no JSON"))
            }
        } else {
            hasSentLine = true
        }
        send(.error(BluetoothError(error), FailureContext(command: error.command)), id: error.id)
    }

    private func hello(_ request: BridgeRequest, _ token: String?) {
        guard configuration.admits(token) else {
            return hangUp(BluetoothError(.unauthorized, "the token is wrong", advice: "Ask whoever runs the bridge."))
        }
        isAdmitted = true
        guard configuration.offersExtension else { return }
        isExtended = true
        // In full: the greeting had the state only.
        send(.bluetoothStateChanged(status))
        send(.done(attMTU: nil, isBroadcast: radio.notificationScope == .allSubscribers), id: request.id)
    }

    private func refuseUnlessAdmitted() {
        guard !isAdmitted else { return }
        hangUp(
            BluetoothError(
                .unauthorized, "this bridge wants a token",
                advice: "Begin with {\"command\":\"hello\",\"extension\":1,\"token\":\"…\"}."))
    }

    private func perform(_ request: BridgeRequest) {
        switch request.command {
        case .startScan, .stopScan:
            performScan(request)
        case .connect(let address, let timeout):
            connect(request, address, timeout)
        case .discoverServices(let connection, _, _), .disconnect(let connection):
            onLink(connection, request)
        case .readCharacteristic(let attribute), .writeCharacteristic(let attribute, _, _),
            .setNotify(let attribute, _):
            onLink(attribute.connection, request)
        case .advertise(let offer):
            advertise(request, offer)
        case .stopAdvertise(let session):
            stopAdvertise(request, session)
        case .sendNotification(let connection, let attribute, let value, let session):
            notify(request, connection, attribute, value, session)
        case .respond(let number, let response):
            respond(number, response)
        case .cancel(let target):
            operations[target]?.cancel()
        case .hello:
            break
        }
    }

    // MARK: - The end

    private func cleanUp() async {
        isEnding = true
        wakeStatusWaiters()
        scanOperation?.cancel()
        for operation in Array(operations.values) + Array(serveOperations.values) { operation.cancel() }
        for task in loose.values { task.cancel() }
        scanLane.close()
        serveLane.close()
        // In this order: what is under way can still make something, which is then taken down.
        for task in loose.values { await task.value }
        await scanLane.end()
        await serveLane.end()
        await endScan()
        await withTaskGroup(of: Void.self) { group in
            for link in links.values { group.addTask { await link.takeDown() } }
            for session in served.values { group.addTask { await session.stop() } }
        }
        for session in served.values { release(session) }
        links = [:]
        served = [:]
    }
}

extension BluetoothError {
    /// Whether the adapter is away and may come back.
    var isAbsence: Bool {
        switch code {
        case .adapterNotFound, .poweredOff, .serviceUnavailable, .resetting: true
        default: false
        }
    }

    static func tooMany(_ what: String) -> BluetoothError {
        BluetoothError(.limitExceeded, "too many \(what)", advice: "Wait for what is under way.")
    }
}
