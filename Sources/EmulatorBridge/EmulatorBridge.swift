// SPDX-License-Identifier: MIT

public import BluetoothLE
public import BridgeRadio

/// A server of the bridge protocol of BLEForEmulator, version 1, over any radio.
///
/// ```swift
/// let bridge = try EmulatorBridge(radios: .shared(radio))
/// let endpoint = try await bridge.start()
/// ```
///
/// Each TCP connection is a client with a scan, links and advertisements of its own, all of which end with it. A bridge
/// that nobody holds any more stops listening once its last client has gone.
public final class EmulatorBridge: Sendable {
    private enum Phase {
        case idle
        /// `start` is under way.
        case opening
        case listening(Listener)
        case stopped
    }

    private struct State {
        var phase = Phase.idle
        var clients: [Int: Task<Void, Never>] = [:]
        var sockets: [Int: LineSocket] = [:]
        var nextClient = 0
    }

    private let radios: BridgeRadios
    private let configuration: BridgeConfiguration
    private let claims = Claims()
    private let state = Locked(State())
    private let notices: AsyncStream<BridgeNotice>.Continuation

    /// For one reader. The newest 256 are kept for a slow one; ends when the bridge has stopped.
    public let events: AsyncStream<BridgeNotice>

    /// - Throws: `invalidArgument`.
    public init(
        radios: BridgeRadios,
        configuration: BridgeConfiguration = BridgeConfiguration()
    ) throws(BluetoothError) {
        try configuration.check()
        self.radios = radios
        self.configuration = configuration
        (events, notices) = AsyncStream.makeStream(
            of: BridgeNotice.self, bufferingPolicy: .bufferingNewest(Limits.events))
    }

    deinit {
        if case .listening(let listener) = state.withLock({ $0.phase }) { listener.close() }
        notices.finish()
    }

    /// Listens from now on.
    ///
    /// - Returns: where, with the port that the system chose where it could.
    /// - Throws: `unauthorized` for an address that others can reach while there is no token; `serviceUnavailable`
    ///   where the system refuses, after which it can be tried again; `invalidArgument` the second time, also while the
    ///   first is under way; `cancelled` where `stop` came meanwhile.
    public func start() async throws(BluetoothError) -> BridgeEndpoint {
        let isFirst = state.withLock { state in
            guard case .idle = state.phase else { return false }
            state.phase = .opening
            return true
        }
        guard isFirst else { throw BluetoothError(.invalidArgument, "a bridge starts once") }
        let listener: Listener
        do throws(BluetoothError) {
            listener = try await open()
        } catch {
            state.withLock { if case .opening = $0.phase { $0.phase = .idle } }
            throw error
        }
        let isWanted = state.withLock { state in
            guard case .opening = state.phase else { return false }
            state.phase = .listening(listener)
            return true
        }
        guard isWanted else {
            listener.close()
            throw .cancelled
        }
        return listener.endpoint
    }

    private func open() async throws(BluetoothError) -> Listener {
        try await Listener.open(configuration.endpoint, mayBeRemote: configuration.token != nil) {
            [weak self] descriptor in
            guard let self else { return SocketSystem.close(descriptor) }
            accept(descriptor)
        }
    }

    /// Clients at the moment.
    public var clientCount: Int { state.withLock { $0.clients.count } }

    /// Cuts all clients off, cleans up after them, and returns when that is done, or after 8 s where a radio does not
    /// let go. A second call does nothing but wait.
    public func stop() async {
        let (phase, clients) = state.withLock { state in
            defer { state.phase = .stopped }
            for socket in state.sockets.values { socket.close(last: Self.goodbye) }
            return (state.phase, Array(state.clients.values))
        }
        if case .listening(let listener) = phase { listener.close() }
        let end = Latch<Void>()
        Task {
            for client in clients { await client.value }
            end.set(())
        }
        let patience = Task { [limit = configuration.cleanUp] in
            try? await Task.sleep(for: limit)
            end.set(())
        }
        await end.value()
        patience.cancel()
        notices.finish()
    }

    private func accept(_ descriptor: Int32) {
        var policy = LineSocket.Policy()
        policy.rate = Limits.rate
        policy.farewell = Self.line(
            .limitExceeded, "the client does not read what it is sent", "Read faster, or scan for fewer devices.")
        // Called by the loop that is to serve it, so that there is one.
        guard let socket = try? LineSocket(descriptor: descriptor, policy: policy) else { return }
        let isWelcome = state.withLock { state in
            if case .stopped = state.phase { return false }
            guard state.clients.count < configuration.maximumClients else { return false }
            state.nextClient += 1
            let number = state.nextClient
            state.sockets[number] = socket
            state.clients[number] = Task { await serve(number, socket) }
            return true
        }
        guard !isWelcome else { return }
        notices.yield(.clientRefused)
        socket.close(
            last: Self.line(
                .limitExceeded, "the bridge has \(configuration.maximumClients) clients already", "Try again later."))
    }

    private func serve(_ number: Int, _ socket: LineSocket) async {
        notices.yield(.clientConnected(number))
        let radio: any Radio
        let claims: Claims?
        switch radios {
        case .shared(let shared): (radio, claims) = (shared, self.claims)
        case .each(let make): (radio, claims) = (make(), nil)
        }
        let session = ClientSession(
            number: number, socket: socket, radio: radio, configuration: configuration, claims: claims)
        let ending = await session.run()
        state.withLock { state in
            state.clients[number] = nil
            state.sockets[number] = nil
        }
        notices.yield(.clientLeft(number, ending))
    }

    private static func line(_ code: BluetoothError.Code, _ message: String, _ advice: String? = nil) -> [UInt8] {
        BridgeMessage(.error(BluetoothError(code, message, advice: advice), FailureContext())).line()
    }

    private static let goodbye = line(.serviceUnavailable, "the bridge ends")
}
