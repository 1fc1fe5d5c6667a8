// SPDX-License-Identifier: MIT

/// What happens to a ``BusConnector``'s connection.
public enum BusEvent: Sendable {
    /// A new connection: everything that was registered on an earlier one must be registered again.
    case connected(DBusConnection)
    /// The connection was lost, or an attempt to open one failed. Another attempt follows.
    case disconnected(DBusError)
}

/// Keeps a connection to a bus: opens one, and a new one whenever it is lost, with pauses from 100 ms that double up to
/// 5 s until a connection has lasted 5 s. A connection that is closed by hand counts as lost.
///
/// Letting go of the connector stops it.
public final class BusConnector: Sendable {
    public let loop: EventLoop
    public let address: BusAddress
    private let state: ConnectorState

    public init(_ address: BusAddress, on loop: EventLoop = .shared) {
        self.loop = loop
        self.address = address
        state = ConnectorState(address, loop)
    }

    deinit {
        stop()
    }

    /// Starts; events come to the handler on the loop until ``stop()``. Starting twice changes nothing.
    public func start(_ handler: @escaping @Sendable (BusEvent) -> Void) {
        loop.execute { [state] in state.start(handler, onStop: nil) }
    }

    /// Starts, as a stream (the newest 16 events are kept). Ending the stream stops the connector, and stopping the
    /// connector ends the stream. Of a connector that has started already the stream is empty, and changes nothing.
    public func events() -> AsyncStream<BusEvent> {
        let (stream, writer) = AsyncStream.makeStream(of: BusEvent.self, bufferingPolicy: .bufferingNewest(16))
        let starter = Starter()
        writer.onTermination = { [loop, state] _ in loop.execute { state.stop(startedBy: starter) } }
        loop.execute { [state] in state.start({ writer.yield($0) }, onStop: { writer.finish() }, starter) }
        return stream
    }

    /// Closes the connection and opens no more. No event follows.
    public func stop() {
        loop.execute { [state] in state.stop() }
    }
}

/// Who started a connector, by its identity.
private final class Starter: Sendable {}

/// `@unchecked Sendable`: the variables are touched on the loop only.
private final class ConnectorState: @unchecked Sendable {
    private let address: BusAddress
    private let loop: EventLoop
    private var handler: (@Sendable (BusEvent) -> Void)?
    private var onStop: (@Sendable () -> Void)?
    private var starter: Starter?
    private var stopped = false
    private var opening: ConnectionOpening?
    private var connection: DBusConnection?
    private var timer: TimerToken?
    private var pause = Limits.reconnectPause.lowerBound
    /// When the connection was opened.
    private var opened: UInt64?

    init(_ address: BusAddress, _ loop: EventLoop) {
        self.address = address
        self.loop = loop
    }

    func start(
        _ handler: @escaping @Sendable (BusEvent) -> Void, onStop: (@Sendable () -> Void)?, _ starter: Starter? = nil
    ) {
        guard self.handler == nil, !stopped else {
            onStop?()
            return
        }
        self.handler = handler
        self.onStop = onStop
        self.starter = starter
        attempt()
    }

    func stop(startedBy starter: Starter) {
        if self.starter === starter { stop() }
    }

    func stop() {
        guard !stopped else { return }
        stopped = true
        handler = nil
        timer?.cancel()
        opening?.cancel()
        if let core = connection?.core { core.end(DBusError(.closed, "the connection is closed")) }
        connection = nil
        onStop?()
        onStop = nil
    }

    private func attempt() {
        guard !stopped else { return }
        let opening = ConnectionOpening(loop: loop) { self.opened($0) }
        self.opening = opening
        opening.start(address, timeout: Limits.openTimeout)
    }

    private func opened(_ result: Result<DBusConnection, DBusError>) {
        opening = nil
        guard !stopped else { return }
        switch result {
        case .success(let connection):
            self.connection = connection
            opened = LoopCore.now()
            connection.core.onEnd { self.lost($0) }
            handler?(.connected(connection))
        case .failure(let error):
            lost(error)
        }
    }

    private func lost(_ error: DBusError) {
        guard !stopped else { return }
        connection = nil
        // One that lasted. A bus that takes everybody in and throws them out again, or a service whose first answer is
        // over a limit, would be asked ten times a second.
        if let opened, LoopCore.now() - opened >= LoopCore.nanoseconds(Limits.reconnectPause.upperBound) {
            pause = Limits.reconnectPause.lowerBound
        }
        opened = nil
        handler?(.disconnected(error))
        guard !stopped else { return }
        timer = loop.schedule(after: pause) { self.attempt() }
        pause = min(pause * 2, Limits.reconnectPause.upperBound)
    }
}
