// SPDX-License-Identifier: MIT

/// One connection to a bus, from its opening to its loss. It does not come back; ``BusConnector`` opens new ones.
///
/// The actor lives on its ``loop``. Code that runs there already (a handler, or another actor on the same loop) reaches
/// the synchronous methods through `assumeIsolated`. Letting go of the connection closes it.
public actor DBusConnection {
    public nonisolated let loop: EventLoop
    /// The name the bus gave this connection, such as `:1.42`.
    public nonisolated let uniqueName: String
    let core: ConnectionCore

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(loop: EventLoop, uniqueName: String, core: ConnectionCore) {
        self.loop = loop
        self.uniqueName = uniqueName
        self.core = core
    }

    deinit {
        core.closeFromAnywhere()
    }

    // MARK: Opening and closing

    /// Connects to a bus and introduces itself (`Hello`). The connection is private to the caller.
    ///
    /// - Parameter timeout: the time for all of it, so that a bus that hangs is noticed.
    /// - Throws: ``DBusError/Code/noBus``, ``DBusError/Code/accessDenied``, ``DBusError/Code/timedOut``,
    ///   ``DBusError/Code/invalidArgument`` for a wrong address, ``DBusError/Code/cancelled``.
    public nonisolated(nonsending) static func open(
        _ address: BusAddress, on loop: EventLoop = .shared, timeout: Duration = .seconds(10)
    ) async throws(DBusError) -> DBusConnection {
        throw DBusError(.noBus, "not yet")
    }

    /// The same, without a task: the completion is called on the loop.
    public static func open(
        _ address: BusAddress,
        on loop: EventLoop = .shared,
        timeout: Duration = .seconds(10),
        completion: @escaping @Sendable (Result<DBusConnection, DBusError>) -> Void
    ) {
        loop.execute { completion(.failure(DBusError(.noBus, "not yet"))) }
    }

    /// Closes the connection. What waits for an answer fails with ``DBusError/Code/closed``. May be called twice.
    public func close() {}

    /// Waits until the connection is lost or closed, and says why. A cancelled wait gives
    /// ``DBusError/Code/cancelled``.
    public var closed: DBusError {
        get async { DBusError(.closed, "not yet") }
    }

    /// Calls a handler on the loop once, when the connection is lost or closed; at once if it is already.
    public func onDisconnect(_ handler: @escaping @Sendable (DBusError) -> Void) {}

    // MARK: Calls

    /// Calls a method and waits for its answer.
    ///
    /// - Parameters:
    ///   - returning: the signature that the answer must have; nil takes any.
    ///   - timeout: how long to wait.
    /// - Throws: ``DBusError/Code/remote`` with the error's name if the peer answers with one; ``timedOut``,
    ///   ``cancelled``, ``disconnected``, ``invalidArgument``, ``limitExceeded``, ``signatureMismatch`` of
    ///   ``DBusError/Code``.
    public func call(
        _ destination: String,
        _ path: ObjectPath,
        _ interface: String,
        _ member: String,
        _ body: [DBusValue] = [],
        returning: String? = nil,
        timeout: Duration = .seconds(25)
    ) async throws(DBusError) -> [DBusValue] {
        throw DBusError(.noBus, "not yet")
    }

    /// Sends a call without a task. The completion runs on the loop, once, in the order of the bus relative to signals.
    /// On the loop the message is written before this returns.
    public nonisolated func send(
        call: DBusCall, completion: @escaping @Sendable (Result<[DBusValue], DBusError>) -> Void
    ) {}

    /// Sends a call that wants no answer (`NO_REPLY_EXPECTED`).
    public func sendWithoutReply(_ call: DBusCall) throws(DBusError) {}

    // MARK: Signals

    /// Sends a signal to everybody who listens, or to one destination.
    public func emitSignal(
        _ path: ObjectPath,
        _ interface: String,
        _ member: String,
        _ body: [DBusValue] = [],
        to destination: String? = nil
    ) throws(DBusError) {}

    /// Subscribes to messages. The handler runs on the loop, in the order of the bus relative to replies.
    public func addMatch(
        _ rule: MatchRule, _ handler: @escaping @Sendable (DBusMessage) -> Void
    ) async throws(DBusError) -> MatchToken {
        throw DBusError(.noBus, "not yet")
    }

    /// Subscribes without a task: the handler may be called before the completion, which has the bus's answer.
    @discardableResult
    public func addMatch(
        _ rule: MatchRule,
        _ handler: @escaping @Sendable (DBusMessage) -> Void,
        completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
    ) -> MatchToken {
        MatchToken {}
    }

    /// Subscribes as a stream. It ends with the connection; ending it ends the subscription.
    ///
    /// - Parameter bufferLimit: messages kept for a slow reader, 1 or more; beyond that the oldest are dropped.
    public func signals(
        _ rule: MatchRule, bufferLimit: Int = 256
    ) async throws(DBusError) -> AsyncStream<DBusMessage> {
        throw DBusError(.noBus, "not yet")
    }

    // MARK: Exported objects

    /// Makes an object callable. Beneath an object manager `InterfacesAdded` is emitted.
    ///
    /// - Throws: ``DBusError/Code/invalidArgument`` for wrong names, or a path that is taken already.
    public func export(_ object: any ExportedObject, at path: ObjectPath) throws(DBusError) {}

    /// Takes an object back. Beneath an object manager `InterfacesRemoved` is emitted.
    public func unexport(_ path: ObjectPath) {}

    /// Answers `GetManagedObjects` at a path for every object exported beneath it, and emits `InterfacesAdded` and
    /// `InterfacesRemoved` from it.
    public func exportObjectManager(at root: ObjectPath) throws(DBusError) {}

    /// Takes an object manager back.
    public func unexportObjectManager(at root: ObjectPath) {}

    /// Emits `PropertiesChanged`.
    public func emitPropertiesChanged(
        _ path: ObjectPath,
        _ interface: String,
        changed: [(String, DBusValue)],
        invalidated: [String] = []
    ) throws(DBusError) {}

    // MARK: Names

    /// Owns a well-known name, or fails: it does not queue and does not take the name from anybody.
    ///
    /// - Throws: ``DBusError/Code/addressInUse`` if somebody else has it, ``DBusError/Code/accessDenied``.
    public func requestName(_ name: String) async throws(DBusError) {}

    /// Gives a name back. It is no error not to have it.
    public func releaseName(_ name: String) async throws(DBusError) {}

    /// The unique name that owns a name now; nil if nobody does.
    public func nameOwner(of name: String) async throws(DBusError) -> String? { nil }

    /// Follows the owner of a name. The handler is called on the loop, first with the present owner (nil: none), then at
    /// each change.
    public func watchOwner(
        of name: String, _ handler: @escaping @Sendable (String?) -> Void
    ) async throws(DBusError) -> MatchToken {
        throw DBusError(.noBus, "not yet")
    }
}
