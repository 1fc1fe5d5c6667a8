// SPDX-License-Identifier: MIT

/// A call to an exported object. Answer it once with ``reply(_:)`` or ``fail(_:)``, from any thread.
///
/// A call that is released without an answer is answered with `org.freedesktop.DBus.Error.Failed`: no caller waits for
/// nothing.
///
/// `@unchecked Sendable`: `answer` is guarded by `lock`, everything else is constant.
public final class MethodCall: @unchecked Sendable {
    /// The caller's unique name, which the bus vouches for.
    public let sender: String
    public let path: ObjectPath
    public let interface: String
    public let member: String
    public let arguments: [DBusValue]

    private let lock = Lock()
    private var answer: (@Sendable (Result<[DBusValue], DBusError>) -> Void)?

    package init(
        sender: String,
        path: ObjectPath,
        interface: String,
        member: String,
        arguments: [DBusValue],
        answer: @escaping @Sendable (Result<[DBusValue], DBusError>) -> Void
    ) {
        self.sender = sender
        self.path = path
        self.interface = interface
        self.member = member
        self.arguments = arguments
        self.answer = answer
    }

    deinit {
        answer?(.failure(DBusError(name: ErrorName.failed, message: "\(interface).\(member) was not answered")))
    }

    /// Answers with values of the method's output signature; anything else, and what is too much for one message,
    /// reaches the caller as an error. A second answer is ignored.
    public func reply(_ values: [DBusValue] = []) {
        complete(.success(values))
    }

    /// Answers with an error. One without a D-Bus error name is sent as `org.freedesktop.DBus.Error.Failed`.
    public func fail(_ error: DBusError) {
        complete(.failure(error))
    }

    public func fail(name: String, message: String) {
        complete(.failure(DBusError(name: name, message: message)))
    }

    private func complete(_ result: Result<[DBusValue], DBusError>) {
        let answer = lock.withLock {
            defer { self.answer = nil }
            return self.answer
        }
        answer?(result)
    }
}
