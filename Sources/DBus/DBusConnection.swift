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
    public static func open(
        _ address: BusAddress,
        on loop: EventLoop = .shared,
        timeout: Duration = .seconds(10),
        isolation: isolated (any Actor)? = #isolation
    ) async throws(DBusError) -> DBusConnection {
        let opened = Handover<DBusConnection>()
        let opening = ConnectionOpening(loop: loop) { opened.fulfil($0) }
        opening.start(address, timeout: timeout)
        let result = await withTaskCancellationHandler {
            // Named so that the closure stays where the caller is, off the global executor.
            _ = isolation
            return await withCheckedContinuation { opened.wait($0) }
        } onCancel: {
            opening.cancel()
        }
        return try result.get()
    }

    /// The same, without a task: the completion is called on the loop.
    public static func open(
        _ address: BusAddress,
        on loop: EventLoop = .shared,
        timeout: Duration = .seconds(10),
        completion: @escaping @Sendable (Result<DBusConnection, DBusError>) -> Void
    ) {
        ConnectionOpening(loop: loop, completion: completion).start(address, timeout: timeout)
    }

    /// Closes the connection. What waits for an answer fails with ``DBusError/Code/closed``. May be called twice.
    public func close() {
        core.end(DBusError(.closed, "the connection is closed"))
    }

    /// Waits until the connection is lost or closed, and says why. A cancelled wait gives
    /// ``DBusError/Code/cancelled``.
    public var closed: DBusError {
        get async {
            if let ended = core.ended { return ended }
            let core = core
            let waiter = EndWaiter()
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    // As in `call`.
                    guard !Task.isCancelled else { return continuation.resume(returning: .waitCancelled) }
                    waiter.id = self.core.onEnd { continuation.resume(returning: $0) }
                }
            } onCancel: {
                core.loop.execute {
                    guard let id = waiter.id else { return }
                    core.removeEndHandler(id, calling: .waitCancelled)
                }
            }
        }
    }

    /// Calls a handler on the loop once, when the connection is lost or closed; at once if it is already.
    public func onDisconnect(_ handler: @escaping @Sendable (DBusError) -> Void) {
        core.onEnd(handler)
    }

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
        timeout: Duration = .seconds(25),
        isolation: isolated (any Actor)? = #isolation
    ) async throws(DBusError) -> [DBusValue] {
        try await call(
            DBusCall(destination, path, interface, member, body, returning: returning, timeout: timeout),
            isolation: isolation)
    }

    /// Calls a method and waits for its answer.
    public func call(
        _ call: DBusCall, isolation: isolated (any Actor)? = #isolation
    ) async throws(DBusError) -> [DBusValue] {
        try await (loop.isCurrent ? callOnLoop(call) : callFromHere(call)).get()
    }

    private func callOnLoop(_ call: DBusCall) async -> Answer<[DBusValue]> {
        // A continuation resumes on the task's executor, whatever actor waits (seen with Swift 6.3.1): without the
        // preference each answer would go through the global executor and back, two changes of thread.
        await withTaskExecutorPreference(loop, isolation: self) { await callFromHere(call, isolation: self) }
    }

    /// Sends on the caller's thread, which spares a change to the loop's.
    private func callFromHere(
        _ call: DBusCall, isolation: isolated (any Actor)? = #isolation
    ) async -> Answer<[DBusValue]> {
        let core = core
        let id = core.newCallID()
        // `isolation` is named because a closure that does not capture the actor is not isolated to it.
        return await withTaskCancellationHandler(
            operation: {
                _ = isolation
                return await withUnsafeContinuation(isolation: isolation) {
                    (continuation: UnsafeContinuation<Answer<[DBusValue]>, Never>) in
                    guard !Task.isCancelled else { return continuation.resume(returning: .failure(.callCancelled)) }
                    core.call(call, id: id, .task(continuation))
                    // One that is cancelled meanwhile may have told so while there was nothing to cancel yet.
                    if Task.isCancelled { core.loop.execute { core.cancelCall(id: id) } }
                }
            },
            onCancel: { core.loop.execute { core.cancelCall(id: id) } },
            isolation: isolation)
    }

    /// Sends a call without a task. The completion runs on the loop, once, in the order of the bus relative to signals.
    /// On the loop the message is written before this returns.
    public nonisolated func send(
        call: DBusCall, completion: @escaping @Sendable (Result<[DBusValue], DBusError>) -> Void
    ) {
        core.call(call, completion)
    }

    /// Sends a call that wants no answer (`NO_REPLY_EXPECTED`).
    ///
    /// - Throws: ``DBusError/Code/invalidArgument`` for what D-Bus does not allow, ``DBusError/Code/limitExceeded`` for
    ///   more than a bus takes in one message or while it does not read; ``disconnected``, ``closed``,
    ///   ``internalFailure`` of ``DBusError/Code``. Nothing is sent then.
    public func sendWithoutReply(_ call: DBusCall) throws(DBusError) {
        try core.sendWithoutReply(call)
    }

    // MARK: Signals

    /// Sends a signal to everybody who listens, or to one destination.
    ///
    /// - Throws: As ``sendWithoutReply(_:)``.
    public func emitSignal(
        _ path: ObjectPath,
        _ interface: String,
        _ member: String,
        _ body: [DBusValue] = [],
        to destination: String? = nil
    ) throws(DBusError) {
        try core.emitSignal(path, interface, member, body, to: destination)
    }

    /// Subscribes to messages. The handler runs on the loop, in the order of the bus relative to replies.
    ///
    /// - Throws: ``DBusError/Code/invalidArgument`` for a wrong rule; ``DBusError/Code/remote`` or
    ///   ``DBusError/Code/accessDenied`` if the bus refuses it; ``DBusError/Code/cancelled`` at once when the task is
    ///   cancelled, after which the subscription ends when the bus has answered; ``timedOut``, ``disconnected``,
    ///   ``closed``, ``limitExceeded`` of ``DBusError/Code``.
    public func addMatch(
        _ rule: MatchRule, _ handler: @escaping @Sendable (DBusMessage) -> Void
    ) async throws(DBusError) -> MatchToken {
        try await token { subscribe(rule, handler, $0) }
    }

    private typealias Answer<Success> = Result<Success, DBusError>

    /// Waits for what was begun, or the task's cancellation; nobody is left with a token that comes after that.
    private func token(
        _ begin: (@escaping @Sendable (Answer<MatchToken>) -> Void) -> Void
    ) async throws(DBusError) -> MatchToken {
        guard !Task.isCancelled else { throw .waitCancelled }
        let answer = Handover<MatchToken>()
        begin { result in
            if !answer.fulfil(result), case .success(let token) = result { token.cancel() }
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { answer.wait($0) }
        } onCancel: {
            answer.fulfil(.failure(.waitCancelled))
        }
        return try result.get()
    }

    private func subscribe(
        _ rule: MatchRule,
        _ handler: @escaping @Sendable (DBusMessage) -> Void,
        onEnd: (@Sendable () -> Void)? = nil,
        _ completion: @escaping @Sendable (Result<MatchToken, DBusError>) -> Void
    ) {
        // The completion may come before the token does.
        let handover = Handover<Void>()
        let token = core.subscribe(rule, handler: handler, onEnd: onEnd) { handover.fulfil($0) }
        handover.wait { result in completion(result.map { token }) }
    }

    /// Subscribes without a task: the handler may be called before the completion, which has the bus's answer.
    @discardableResult
    public func addMatch(
        _ rule: MatchRule,
        _ handler: @escaping @Sendable (DBusMessage) -> Void,
        completion: @escaping @Sendable (Result<Void, DBusError>) -> Void
    ) -> MatchToken {
        core.subscribe(rule, handler: handler, completion: completion)
    }

    /// Subscribes as a stream. It ends with the connection; ending it ends the subscription.
    ///
    /// - Parameter bufferLimit: messages kept for a slow reader, 1 or more; beyond that the oldest are dropped.
    /// - Throws: As ``addMatch(_:_:)``.
    public func signals(
        _ rule: MatchRule, bufferLimit: Int = 256
    ) async throws(DBusError) -> AsyncStream<DBusMessage> {
        guard bufferLimit > 0 else { throw DBusError(.invalidArgument, "a stream's buffer holds 1 message or more") }
        let (stream, writer) = AsyncStream.makeStream(
            of: DBusMessage.self, bufferingPolicy: .bufferingNewest(bufferLimit))
        let token = try await token { subscribe(rule, { writer.yield($0) }, onEnd: { writer.finish() }, $0) }
        // The connection may have ended, and the stream with it, or the reader may have gone.
        writer.onTermination = { _ in token.cancel() }
        if core.ended != nil { writer.finish() }
        return stream
    }

    // MARK: Exported objects

    /// Makes an object callable. Beneath an object manager `InterfacesAdded` is emitted.
    ///
    /// - Throws: ``DBusError/Code/invalidArgument`` for wrong names, or a path that is taken already or that D-Bus
    ///   reserves; beneath an object manager what ``sendWithoutReply(_:)`` throws.
    public func export(_ object: any ExportedObject, at path: ObjectPath) throws(DBusError) {
        try core.export(object, at: path)
    }

    /// Takes an object back. Beneath an object manager `InterfacesRemoved` is emitted.
    public func unexport(_ path: ObjectPath) {
        core.unexport(path)
    }

    /// Answers `GetManagedObjects` at a path for every object exported beneath it, and emits `InterfacesAdded` and
    /// `InterfacesRemoved` from it.
    ///
    /// - Throws: ``DBusError/Code/invalidArgument`` for a path that D-Bus reserves, ``DBusError/Code/limitExceeded``;
    ///   ``disconnected``, ``closed`` of ``DBusError/Code``.
    public func exportObjectManager(at root: ObjectPath) throws(DBusError) {
        if let ended = core.ended { throw ended }
        try Names.checkNotReserved(path: root)
        guard core.objectManagers.count < Limits.exportedObjects else {
            throw DBusError(.limitExceeded, "more than \(Limits.exportedObjects) object managers")
        }
        core.objectManagers.insert(root)
    }

    /// Takes an object manager back.
    public func unexportObjectManager(at root: ObjectPath) {
        core.objectManagers.remove(root)
    }

    /// Emits `PropertiesChanged`.
    ///
    /// - Throws: As ``sendWithoutReply(_:)``.
    public func emitPropertiesChanged(
        _ path: ObjectPath,
        _ interface: String,
        changed: [(String, DBusValue)],
        invalidated: [String] = []
    ) throws(DBusError) {
        let body: [DBusValue] = [.string(interface), .variantDictionary(pairs: changed), .strings(invalidated)]
        try core.emitSignal(path, StandardInterface.properties, "PropertiesChanged", body, to: nil)
    }

    // MARK: Names

    /// Owns a well-known name, or fails: it does not queue and does not take the name from anybody.
    ///
    /// - Throws: ``DBusError/Code/addressInUse`` if somebody else has it, ``DBusError/Code/accessDenied``.
    public func requestName(_ name: String) async throws(DBusError) {
        guard Names.isWellKnown(name) else { throw DBusError(.invalidArgument, "not a well-known bus name: \(name)") }
        // 4: do not queue. Answers 1 and 4: it is ours now, or was before.
        let answer = try await callBus("RequestName", [.string(name), .uint32(4)], returning: "u")
        guard answer == [.uint32(1)] || answer == [.uint32(4)] else {
            throw DBusError(.addressInUse, "the bus name \(name) is owned by somebody else")
        }
    }

    /// Gives a name back. It is no error not to have it.
    public func releaseName(_ name: String) async throws(DBusError) {
        guard Names.isWellKnown(name) else { throw DBusError(.invalidArgument, "not a well-known bus name: \(name)") }
        _ = try await callBus("ReleaseName", [.string(name)], returning: "u")
    }

    /// The unique name that owns a name now; nil if nobody does.
    public func nameOwner(of name: String) async throws(DBusError) -> String? {
        guard Names.isBusName(name) else { throw DBusError(.invalidArgument, "not a valid bus name: \(name)") }
        do throws(DBusError) {
            return try await callBus("GetNameOwner", [.string(name)], returning: "s").first?.asString
        } catch  where error.isServiceUnknown {
            return nil
        }
    }

    private func callBus(
        _ member: String, _ body: [DBusValue], returning: String
    ) async throws(DBusError) -> [DBusValue] {
        try await call(
            StandardInterface.bus, StandardInterface.busPath, StandardInterface.bus, member, body, returning: returning)
    }

    /// Follows the owner of a name. The handler is called on the loop, first with the present owner (nil: none), then at
    /// each change.
    ///
    /// - Throws: As ``addMatch(_:_:)``.
    public func watchOwner(
        of name: String, _ handler: @escaping @Sendable (String?) -> Void
    ) async throws(DBusError) -> MatchToken {
        try await token { core.watchOwner(name, handler: handler, completion: $0) }
    }
}
