// SPDX-License-Identifier: MIT

import CDBus

/// A call of ours that waits for its answer.
struct PendingCall {
    enum Completion {
        /// Unsafe only in that nothing checks that it is resumed once: it is resumed by whoever takes the call out of
        /// the table. The checked kind costs an allocation per call.
        case task(UnsafeContinuation<Result<[DBusValue], DBusError>, Never>)
        case handler(@Sendable (Result<[DBusValue], DBusError>) -> Void)

        func callAsFunction(_ result: Result<[DBusValue], DBusError>) {
            switch self {
            case .task(let continuation): continuation.resume(returning: result)
            case .handler(let handler): handler(result)
            }
        }
    }

    enum Limit {
        case timer(TimerToken)
        /// Nanoseconds of the loop's clock: a timer set from another thread would wake the loop up.
        case deadline(UInt64)
    }

    /// Known before the serial is, for cancellation.
    let id: UInt64
    let destination: String
    let returning: String?
    let limit: Limit
    let completion: Completion

    /// On the loop, or, with a deadline, anywhere.
    func end(_ result: Result<[DBusValue], DBusError>) {
        if case .timer(let timer) = limit { timer.cancel() }
        completion(result)
    }
}

extension ConnectionCore {
    /// Sends a call, from any thread: a caller that is not on the loop need not wait for a turn of it. The completion is
    /// called later on the loop, or at once if the call cannot be sent.
    func call(_ call: DBusCall, id: UInt64, _ completion: PendingCall.Completion) {
        do throws(DBusError) {
            let message = try RawMessage.call(call)
            lock.lock()
            defer { lock.unlock() }
            try send(message, of: call, id: id, completion)
        } catch {
            switch completion {
            case .task: completion(.failure(error))
            // On the loop, whatever happens.
            case .handler(let handler): onLoop { _ in handler(.failure(error)) }
            }
        }
    }

    /// With the lock held, since the answer may be there before this returns.
    private func send(
        _ message: borrowing RawMessage, of call: DBusCall, id: UInt64, _ completion: PendingCall.Completion
    ) throws(DBusError) {
        guard ended == nil else { throw ended ?? .connectionLost }
        guard pending.count < Limits.pendingCalls else {
            throw DBusError(.limitExceeded, "more than \(Limits.pendingCalls) calls wait for an answer")
        }
        let serial = try transmitLocked(message)
        pending[serial] = PendingCall(
            id: id, destination: call.destination, returning: call.returning,
            limit: limit(of: serial, after: call.timeout), completion: completion)
    }

    private func limit(of serial: UInt32, after timeout: Duration) -> PendingCall.Limit {
        if loop.isCurrent {
            return .timer(loop.core.schedule(after: timeout) { [weak self] in self?.expire(serial) })
        }
        let deadline = LoopCore.now() &+ LoopCore.nanoseconds(timeout)
        if deadline < sweep {
            sweep = deadline
            loop.execute { [weak self] in self?.setSweepTimer(deadline) }
        }
        return .deadline(deadline)
    }

    /// One timer for all calls from other threads. It stays when the call that it was set for is over, so that the next one,
    /// which ends later, need not wake the loop up.
    private func setSweepTimer(_ deadline: UInt64) {
        guard ended == nil else { return }
        sweepTimer?.cancel()
        let left = Int64(clamping: deadline - min(deadline, LoopCore.now()))
        sweepTimer = loop.core.schedule(after: .nanoseconds(left)) { [weak self] in self?.sweepCalls() }
    }

    private func sweepCalls() {
        let now = LoopCore.now()
        var due: [UInt32] = []
        let next = lock.withLock {
            sweep = .max
            for (serial, call) in pending {
                guard case .deadline(let deadline) = call.limit else { continue }
                if deadline <= now { due.append(serial) } else { sweep = min(sweep, deadline) }
            }
            return sweep
        }
        if next != .max { setSweepTimer(next) }
        for serial in due.sorted() { expire(serial) }
    }

    func call(_ call: DBusCall, _ completion: @escaping @Sendable (Result<[DBusValue], DBusError>) -> Void) {
        self.call(call, id: 0, .handler(completion))
    }

    func newCallID() -> UInt64 {
        lock.withLock {
            nextCall += 1
            return nextCall
        }
    }

    /// A call to the bus itself.
    func callBus(
        _ member: String,
        _ body: [DBusValue],
        returning: String?,
        timeout: Duration = .seconds(25),
        _ completion: @escaping @Sendable (Result<[DBusValue], DBusError>) -> Void
    ) {
        call(
            DBusCall(
                StandardInterface.bus, StandardInterface.busPath, StandardInterface.bus, member, body,
                returning: returning, timeout: timeout), completion)
    }

    func sendWithoutReply(_ call: DBusCall) throws(DBusError) {
        let message = try RawMessage.call(call)
        dbus_message_set_no_reply(message.pointer, 1)
        try transmit(message)
    }

    func cancelCall(id: UInt64) {
        guard let serial = lock.withLock({ pending.first { $0.value.id == id }?.key }) else { return }
        finish(serial, .failure(.callCancelled))
    }

    private func expire(_ serial: UInt32) {
        finish(serial, .failure(DBusError(.timedOut, "no answer in time")))
    }

    private func finish(_ serial: UInt32, _ result: Result<[DBusValue], DBusError>) {
        lock.withLock { pending.removeValue(forKey: serial) }?.end(result)
    }

    func failPendingCalls(_ error: DBusError) {
        sweepTimer?.cancel()
        let calls = lock.withLock {
            defer { pending = [:] }
            return pending.sorted { $0.key < $1.key }
        }
        for (_, call) in calls { call.end(.failure(error)) }
    }

    func receiveAnswer(_ message: OpaquePointer) {
        let serial = dbus_message_get_reply_serial(message)
        // An answer may come too late, or from somebody who was not asked.
        guard let call = lock.withLock({ pending[serial] }), isFrom(call.destination, message) else { return }
        finish(serial, answer(message, call.returning))
    }

    /// A unique name answers itself, or the bus in its place. Whoever answers for a well-known name is the bus's concern.
    private func isFrom(_ destination: String, _ message: OpaquePointer) -> Bool {
        guard destination.utf8.first == UInt8(ascii: ":") else { return true }
        return dbus_message_has_sender(message, destination) != 0
            || dbus_message_has_sender(message, StandardInterface.bus) != 0
    }

    private func answer(_ message: OpaquePointer, _ returning: String?) -> Result<[DBusValue], DBusError> {
        if dbus_message_get_type(message) == Int32(DBusMessage.Kind.error.rawValue) {
            return .failure(ConnectionCore.error(message))
        }
        if let returning, dbus_message_has_signature(message, returning) == 0 {
            let found = MessageReader.text(dbus_message_get_signature(message)) ?? ""
            return .failure(
                DBusError(.signatureMismatch, "the answer has the signature \"\(found)\", not \"\(returning)\""))
        }
        return Result { () throws(DBusError) in try MessageReader.body(of: message) }
    }

    private static func error(_ message: OpaquePointer) -> DBusError {
        let name = MessageReader.text(dbus_message_get_error_name(message)) ?? ErrorName.failed
        var iterator = DBusMessageIter()
        var text = ""
        if dbus_message_iter_init(message, &iterator) != 0,
            dbus_message_iter_get_arg_type(&iterator) == Int32(UInt8(ascii: "s"))
        {
            var pointer: UnsafePointer<CChar>?
            dbus_message_iter_get_basic(&iterator, &pointer)
            text = (MessageReader.text(pointer) ?? "").clipped(toBytes: Limits.errorTextBytes)
        }
        return DBusError(name: name, message: text)
    }
}
