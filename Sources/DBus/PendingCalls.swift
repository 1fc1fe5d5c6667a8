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

    /// Known before the serial is, for cancellation.
    let id: UInt64
    let destination: String
    let returning: String?
    let timer: TimerToken
    let completion: Completion
}

extension ConnectionCore {
    /// Sends a call. The completion is called later on the loop, or at once if the call cannot be sent.
    func call(_ call: DBusCall, id: UInt64, _ completion: PendingCall.Completion) {
        do throws(DBusError) {
            guard ended == nil else { throw ended ?? .connectionLost }
            guard pending.count < Limits.pendingCalls else {
                throw DBusError(.limitExceeded, "more than \(Limits.pendingCalls) calls wait for an answer")
            }
            let message = try RawMessage.call(call)
            let serial = try transmit(message)
            let timer = loop.core.schedule(after: call.timeout) { [weak self] in self?.expire(serial) }
            pending[serial] = PendingCall(
                id: id, destination: call.destination, returning: call.returning, timer: timer, completion: completion)
        } catch {
            completion(.failure(error))
        }
    }

    func call(_ call: DBusCall, _ completion: @escaping @Sendable (Result<[DBusValue], DBusError>) -> Void) {
        self.call(call, id: 0, .handler(completion))
    }

    func newCallID() -> UInt64 {
        nextCall += 1
        return nextCall
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
        guard let serial = pending.first(where: { $0.value.id == id })?.key else { return }
        finish(serial, .failure(.callCancelled))
    }

    private func expire(_ serial: UInt32) {
        finish(serial, .failure(DBusError(.timedOut, "no answer in time")))
    }

    private func finish(_ serial: UInt32, _ result: Result<[DBusValue], DBusError>) {
        guard let call = pending.removeValue(forKey: serial) else { return }
        call.timer.cancel()
        call.completion(result)
    }

    func failPendingCalls(_ error: DBusError) {
        let calls = pending.sorted { $0.key < $1.key }
        pending = [:]
        for (_, call) in calls {
            call.timer.cancel()
            call.completion(.failure(error))
        }
    }

    func receiveAnswer(_ message: OpaquePointer) {
        let serial = dbus_message_get_reply_serial(message)
        // An answer may come too late, or from somebody who was not asked.
        guard let call = pending[serial], isFrom(call.destination, message) else { return }
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
            text = String((MessageReader.text(pointer) ?? "").prefix(Limits.errorTextBytes))
        }
        return DBusError(name: name, message: text)
    }
}
