// SPDX-License-Identifier: MIT

import CDBus
import Glibc

/// One attempt to open a connection. Connecting can block (a bus that hangs lets its backlog fill up), so it has a
/// short-lived thread of its own; everything after that happens on the loop.
///
/// `@unchecked Sendable`: the variables are touched on the loop only.
final class ConnectionOpening: @unchecked Sendable {
    typealias Completion = @Sendable (Result<DBusConnection, DBusError>) -> Void

    private let loop: EventLoop
    private var completion: Completion?
    private var timer: TimerToken?
    private var core: ConnectionCore?

    init(loop: EventLoop, completion: @escaping Completion) {
        self.loop = loop
        self.completion = completion
    }

    func start(_ address: BusAddress, timeout: Duration) {
        loop.execute { self.begin(address, timeout: timeout) }
    }

    func cancel() {
        loop.execute { self.finish(.failure(DBusError(.cancelled, "opening was cancelled"))) }
    }

    // MARK: On the loop

    private func begin(_ address: BusAddress, timeout: Duration) {
        guard completion != nil else { return }
        do throws(DBusError) {
            let text = try address.resolved()
            timer = loop.schedule(after: timeout) {
                self.finish(
                    .failure(
                        DBusError(
                            .timedOut, "\(address) does not answer", advice: "is the bus daemon running normally?")))
            }
            try Dialer.dial(text, on: loop) { self.dialled($0) }
        } catch {
            finish(.failure(error))
        }
    }

    private func dialled(_ result: Result<LoopConfined<OpaquePointer>, DBusError>) {
        switch result {
        case .failure(let error):
            finish(.failure(error))
        case .success(let raw):
            // From here on the core owns it, and closes it if the attempt is over already.
            let core = ConnectionCore(loop: loop, connection: raw.value)
            guard completion != nil else { return }
            self.core = core
            do throws(DBusError) {
                try core.attach()
            } catch {
                finish(.failure(error))
                return
            }
            // The blocking dbus_bus_register would hold up the loop; Hello is a call like any other.
            core.callBus("Hello", [], returning: "s", timeout: .seconds(3600)) { self.greeted($0) }
        }
    }

    private func greeted(_ result: Result<[DBusValue], DBusError>) {
        guard let core, completion != nil else { return }
        switch result {
        case .success(let body):
            guard let name = body.first?.asString, Names.isUnique(name) else {
                finish(.failure(DBusError(.noBus, "the bus gave no valid name")))
                return
            }
            core.uniqueName = name
            self.core = nil
            finish(.success(DBusConnection(loop: loop, uniqueName: name, core: core)))
        case .failure(let error) where error.code == .disconnected:
            finish(
                .failure(
                    DBusError(
                        .noBus, "the bus refused the connection",
                        advice: "is it the bus of another user, or not a bus at all?")))
        case .failure(let error):
            finish(.failure(error))
        }
    }

    private func finish(_ result: Result<DBusConnection, DBusError>) {
        guard let completion else { return }
        self.completion = nil
        timer?.cancel()
        timer = nil
        if let core {
            self.core = nil
            // Later: this may be inside the handling of one of its messages.
            loop.execute { core.end(DBusError(.closed, "the connection is closed")) }
        }
        completion(result)
    }
}

/// Connects sockets on threads of their own.
private enum Dialer {
    typealias Completion = @Sendable (Result<LoopConfined<OpaquePointer>, DBusError>) -> Void

    private final class Job: Sendable {
        let address: String
        let loop: EventLoop
        let completion: Completion

        init(_ address: String, _ loop: EventLoop, _ completion: @escaping Completion) {
            self.address = address
            self.loop = loop
            self.completion = completion
        }
    }

    /// Threads that are connecting now, and what waits for one of them.
    ///
    /// `@unchecked Sendable`: guarded by `lock`.
    private final class Slots: @unchecked Sendable {
        enum Turn {
            case now, later, never
        }

        private let lock = Lock()
        private var used = 0
        private var waiting: [Job] = []

        func take(for job: Job) -> Turn {
            lock.withLock {
                if used < Limits.concurrentOpens {
                    used += 1
                    return .now
                }
                guard waiting.count < Limits.waitingOpens else { return .never }
                waiting.append(job)
                return .later
            }
        }

        /// The next job for the caller's slot; nil gives the slot back.
        func next() -> Job? {
            lock.withLock {
                if !waiting.isEmpty { return waiting.removeFirst() }
                used -= 1
                return nil
            }
        }
    }

    private static let slots = Slots()

    static func dial(
        _ address: String, on loop: EventLoop, _ completion: @escaping Completion
    ) throws(DBusError) {
        let job = Job(address, loop, completion)
        switch slots.take(for: job) {
        case .later: return
        case .never: throw DBusError(.limitExceeded, "\(Limits.waitingOpens) connections wait to be opened already")
        case .now: break
        }
        let isRunning = DetachedThread.start {
            var job: Job? = job
            while let current = job {
                let result = Dialer.connect(current.address)
                current.loop.execute { current.completion(result) }
                job = Dialer.slots.next()
            }
        }
        guard isRunning else {
            while let waiting = slots.next() { waiting.loop.execute { waiting.completion(.failure(noThread)) } }
            throw noThread
        }
    }

    private static let noThread = DBusError(.internalFailure, "no thread to connect with")

    private static func connect(_ address: String) -> Result<LoopConfined<OpaquePointer>, DBusError> {
        // So that libdbus guards its globals whatever its version.
        guard dbus_threads_init_default() != 0 else { return .failure(DBusError(.internalFailure, "no memory")) }
        var error = CDBus.DBusError()
        dbus_error_init(&error)
        // Private: it is ours alone, so nobody else reads its messages.
        if let connection = dbus_connection_open_private(address, &error) {
            return .success(LoopConfined(connection))
        }
        defer { dbus_error_free(&error) }
        let name = MessageReader.text(error.name) ?? ErrorName.failed
        let text = MessageReader.text(error.message) ?? "no reason given"
        return .failure(DBusError(code(name), "cannot connect to \(address): \(text)", name: name))
    }

    private static func code(_ name: String) -> DBusError.Code {
        switch name {
        case ErrorName.accessDenied: .accessDenied
        case ErrorName.limitsExceeded: .limitExceeded
        case "org.freedesktop.DBus.Error.BadAddress": .invalidArgument
        case "org.freedesktop.DBus.Error.NoMemory": .internalFailure
        default: .noBus
        }
    }
}
