// SPDX-License-Identifier: MIT

import CDBus

/// What a ``DBusConnection`` is made of: the libdbus connection and everything that hangs on it.
///
/// `@unchecked Sendable`: what stands under "any thread" is touched with `lock` held; all the rest on the loop's thread only,
/// which the actor's executor and `onLoop` see to. libdbus is used with `lock` held, too: it guards its own state, but not the
/// watches that it hands out, and a send from another thread may take one away.
final class ConnectionCore: @unchecked Sendable {
    let loop: EventLoop
    let lock = Lock()

    // Any thread, with `lock`. `connection` and `ended` change on the loop, which may read them without it.
    /// Nil once the connection has ended.
    private(set) var connection: OpaquePointer?
    /// Why the connection ended.
    private(set) var ended: DBusError?
    private var watches: [Int32: [OpaquePointer]] = [:]
    private var watched: Set<Int32> = []
    var pending: [UInt32: PendingCall] = [:]
    var nextCall: UInt64 = 0
    /// When the timer for calls from other threads comes; `.max` if none is set.
    var sweep = UInt64.max

    // The loop.
    /// Set when the bus has answered Hello.
    var uniqueName = ""
    var sweepTimer: TimerToken?
    private var draining = false
    private var popped: [OpaquePointer] = []
    private var drainAgain = false
    private var drainScheduled = false
    /// `ready` drains at its end, so what libdbus reports meanwhile needs no turn of its own.
    private var handlingWatches = false

    var subscriptions = SubscriptionTable()
    var busMatches: [String: BusMatch] = [:]
    var owners: [String: OwnerRecord] = [:]

    var objects: [ObjectPath: ExportedRecord] = [:]
    var objectManagers: Set<ObjectPath> = []
    var unanswered = 0

    var endHandlers: [(id: UInt64, handler: @Sendable (DBusError) -> Void)] = []
    private var nextEndHandler: UInt64 = 0

    init(loop: EventLoop, connection: OpaquePointer) {
        self.loop = loop
        self.connection = connection
    }

    deinit {
        // The watches hold this object, so it goes away either ended or never attached.
        if let connection {
            dbus_connection_close(connection)
            dbus_connection_unref(connection)
        }
    }

    // MARK: Life

    /// Takes the libdbus connection over: no exit of the process when the bus goes, bounds, watches.
    func attach() throws(DBusError) {
        guard let connection else { throw ended ?? .connectionLost }
        dbus_connection_set_exit_on_disconnect(connection, 0)
        dbus_connection_set_max_message_size(connection, Limits.receivedMessageBytes)
        dbus_connection_set_max_message_unix_fds(connection, Limits.receivedMessageFDs)
        dbus_connection_set_max_received_size(connection, Limits.receivedBytes)
        dbus_connection_set_max_received_unix_fds(connection, Limits.receivedFDs)
        // Unretained: `end` takes the functions away again before this object can go.
        let this = Unmanaged.passUnretained(self).toOpaque()
        let attached = lock.withLock {
            dbus_connection_set_watch_functions(
                connection,
                { watch, data in ConnectionCore.from(data)?.add(watch) ?? 0 },
                { watch, data in ConnectionCore.from(data)?.remove(watch) },
                { watch, data in ConnectionCore.from(data)?.toggled(watch) },
                this, nil)
        }
        guard attached != 0 else { throw DBusError(.internalFailure, "cannot watch the connection's socket") }
        dbus_connection_set_dispatch_status_function(
            connection,
            { _, status, data in
                if status == DBUS_DISPATCH_DATA_REMAINS { ConnectionCore.from(data)?.onLoop { $0.scheduleDrain() } }
            }, this, nil)
        scheduleDrain()
    }

    private static func from(_ data: UnsafeMutableRawPointer?) -> ConnectionCore? {
        data.map { Unmanaged<ConnectionCore>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Ends the connection: everything that waits learns why. On the loop, never inside a libdbus callback.
    func end(_ error: DBusError) {
        assert(loop.isCurrent)
        guard ended == nil else { return }
        lock.withLock {
            ended = error
            if let connection {
                dbus_connection_set_dispatch_status_function(connection, nil, nil, nil)
                dbus_connection_set_watch_functions(connection, nil, nil, nil, nil, nil)
                dbus_connection_close(connection)
                dbus_connection_unref(connection)
            }
            connection = nil
            for descriptor in watched { loop.core.unwatch(descriptor) }
            watched = []
            watches = [:]
        }
        failPendingCalls(error)
        endSubscriptions()
        objects = [:]
        objectManagers = []
        let handlers = endHandlers
        endHandlers = []
        for entry in handlers { entry.handler(error) }
    }

    func closeFromAnywhere() {
        loop.execute { self.end(DBusError(.closed, "the connection is closed")) }
    }

    /// Calls a handler once at the end. Returns an id to take it back, nil if the end has come and it was called.
    @discardableResult
    func onEnd(_ handler: @escaping @Sendable (DBusError) -> Void) -> UInt64? {
        assert(loop.isCurrent)
        if let ended {
            handler(ended)
            return nil
        }
        nextEndHandler += 1
        endHandlers.append((nextEndHandler, handler))
        return nextEndHandler
    }

    func removeEndHandler(_ id: UInt64, calling error: DBusError) {
        guard let index = endHandlers.firstIndex(where: { $0.id == id }) else { return }
        endHandlers.remove(at: index).handler(error)
    }

    // MARK: Sending

    /// Hands a message to libdbus, which writes it at once if the socket takes it.
    ///
    /// - Returns: the serial it got.
    @discardableResult
    func transmit(_ message: borrowing RawMessage) throws(DBusError) -> UInt32 {
        lock.lock()
        defer { lock.unlock() }
        return try transmitLocked(message)
    }

    /// The same, with the lock held.
    func transmitLocked(_ message: borrowing RawMessage) throws(DBusError) -> UInt32 {
        guard let connection else { throw ended ?? .connectionLost }
        guard dbus_connection_get_outgoing_size(connection) <= Limits.outgoingBytes else {
            throw DBusError(
                .limitExceeded, "the bus does not read: \(Limits.outgoingBytes) bytes wait to be sent")
        }
        var serial: UInt32 = 0
        guard dbus_connection_send(connection, message.pointer, &serial) != 0 else {
            throw DBusError(.internalFailure, "not sent: no memory, or a bus that takes no file descriptors")
        }
        return serial
    }

    /// Sends an answer. One cannot be refused, so beyond a higher bound the connection is given up instead.
    func transmitAnswer(_ message: borrowing RawMessage) {
        lock.lock()
        defer { lock.unlock() }
        guard let connection else { return }
        guard dbus_connection_get_outgoing_size(connection) <= Limits.outgoingBytesFatal,
            dbus_connection_send(connection, message.pointer, nil) != 0
        else {
            let error = DBusError(.limitExceeded, "an answer could not be sent: the bus does not read, or no memory")
            loop.execute { self.end(error) }
            return
        }
    }

    // MARK: Receiving

    func scheduleDrain() {
        guard !draining else {
            // What a handler sends may find the connection lost, and libdbus says so only once.
            drainAgain = true
            return
        }
        guard !drainScheduled, !handlingWatches else { return }
        drainScheduled = true
        loop.execute { [weak self] in
            self?.drainScheduled = false
            self?.drain()
        }
    }

    /// Handles the messages that libdbus has read. Popping is meant for a connection that nobody else uses, as this one;
    /// it spares libdbus's own dispatch (filters, object tree, pending calls), which would find nothing.
    ///
    /// All at once, and then one after another: whoever is resumed by an answer may send the next call from its own thread
    /// at once, and would find the lock taken, or have the loop wait for it.
    private func drain() {
        guard !draining else { return }
        draining = true
        lock.withLock {
            while let connection, popped.count < Limits.messagesPerTurn,
                let message = dbus_connection_pop_message(connection)
            {
                popped.append(message)
            }
        }
        drainAgain = popped.count == Limits.messagesPerTurn
        for message in popped where ended == nil { receive(message) }
        lock.withLock {
            // With the lock, since letting go of many descriptors makes libdbus read again.
            for message in popped { dbus_message_unref(message) }
        }
        popped.removeAll(keepingCapacity: true)
        draining = false
        if drainAgain { scheduleDrain() }
    }

    private func receive(_ message: OpaquePointer) {
        switch dbus_message_get_type(message) {
        case Int32(DBusMessage.Kind.methodReturn.rawValue), Int32(DBusMessage.Kind.error.rawValue):
            receiveAnswer(message)
        case Int32(DBusMessage.Kind.methodCall.rawValue):
            receiveCall(message)
            receiveForSubscriptions(message)
        case Int32(DBusMessage.Kind.signal.rawValue):
            // libdbus makes this one itself, and takes it from nobody else.
            if dbus_message_is_signal(message, StandardInterface.local, "Disconnected") != 0 {
                end(.connectionLost)
            } else {
                receiveForSubscriptions(message)
            }
        default:
            // The specification: messages of unknown types are ignored.
            break
        }
    }

    // MARK: Watches, called by libdbus with its lock held, and ours: no call back into it but for the watch itself

    private func add(_ watch: OpaquePointer?) -> dbus_bool_t {
        guard let watch else { return 0 }
        let descriptor = dbus_watch_get_unix_fd(watch)
        watches[descriptor, default: []].append(watch)
        return update(descriptor) ? 1 : 0
    }

    private func remove(_ watch: OpaquePointer?) {
        guard let watch else { return }
        let descriptor = dbus_watch_get_unix_fd(watch)
        watches[descriptor]?.removeAll { $0 == watch }
        if watches[descriptor]?.isEmpty == true { watches[descriptor] = nil }
        _ = update(descriptor)
    }

    private func toggled(_ watch: OpaquePointer?) {
        guard let watch else { return }
        _ = update(dbus_watch_get_unix_fd(watch))
    }

    /// Tells epoll what libdbus's two watches of a socket (one to read, one to write) want together. A socket that
    /// nobody wants is taken out, since epoll would report a hang-up on it for ever.
    private func update(_ descriptor: Int32) -> Bool {
        var events: UInt32 = 0
        for watch in watches[descriptor] ?? [] where dbus_watch_get_enabled(watch) != 0 {
            let flags = dbus_watch_get_flags(watch)
            if flags & DBUS_WATCH_READABLE.rawValue != 0 { events |= EPOLLIN.rawValue }
            if flags & DBUS_WATCH_WRITABLE.rawValue != 0 { events |= EPOLLOUT.rawValue }
        }
        if events == 0 {
            if watched.remove(descriptor) != nil { loop.core.unwatch(descriptor) }
            return true
        }
        if watched.contains(descriptor) {
            loop.core.change(descriptor, events: events)
            return true
        }
        // Strong, so that this object lives as long as libdbus may call it.
        guard loop.core.watch(descriptor, events: events, handler: { self.ready(descriptor, $0) }) else { return false }
        watched.insert(descriptor)
        return true
    }

    private func ready(_ descriptor: Int32, _ events: UInt32) {
        var flags: UInt32 = 0
        if events & EPOLLIN.rawValue != 0 { flags |= DBUS_WATCH_READABLE.rawValue }
        if events & EPOLLOUT.rawValue != 0 { flags |= DBUS_WATCH_WRITABLE.rawValue }
        if events & EPOLLHUP.rawValue != 0 { flags |= DBUS_WATCH_HANGUP.rawValue }
        if events & EPOLLERR.rawValue != 0 { flags |= DBUS_WATCH_ERROR.rawValue }
        handlingWatches = true
        lock.withLock {
            for watch in watches[descriptor] ?? [] {
                // Handling one watch can take the other away.
                guard watches[descriptor]?.contains(watch) == true, dbus_watch_get_enabled(watch) != 0 else { continue }
                let wanted = dbus_watch_get_flags(watch) | DBUS_WATCH_HANGUP.rawValue | DBUS_WATCH_ERROR.rawValue
                if flags & wanted != 0 { dbus_watch_handle(watch, flags & wanted) }
            }
        }
        handlingWatches = false
        drain()
    }
}
