// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus
internal import SimulatedRadio

/// org.bluez.GattCharacteristic1 of a remote device.
///
/// Source: src/gatt-client.c of BlueZ, doc/org.bluez.GattCharacteristic.rst.
@BlueZSimulatorActor
final class GattCharacteristic1: BusInterface {
    /// A D-Bus client's notification session. One that was begun without a link waits for the next.
    private struct NotifyClient {
        var isActive = false
        /// Callers of StartNotify that wait for the subscription.
        var waiting: [MethodCall] = []
    }

    let characteristic: RemoteCharacteristic
    let path: ObjectPath
    private let handle: UInt16
    private let service: GattService1
    private var value: [UInt8]?
    private var mtu: Int
    private var isNotifying = false
    private var clients: [String: NotifyClient] = [:]
    private var subscription: Task<Void, Never>?
    private var cancelSubscription: (@Sendable () async -> Void)?
    /// The read that is under way: its offset and everybody who asked for the same.
    private var read: (offset: UInt16, calls: [MethodCall])?
    private var isWriting = false
    nonisolated let declaration: ExportedInterface

    init?(_ characteristic: RemoteCharacteristic, service: GattService1, mtu: Int) {
        guard let handle = characteristic.simulatedHandle,
            let path = service.path.appending("char" + GattService1.digits(handle))
        else { return nil }
        self.characteristic = characteristic
        self.handle = handle
        self.path = path
        self.service = service
        self.mtu = mtu
        declaration = Self.declare(characteristic.properties, service.device.adapter.profile)
    }

    private var adapter: Adapter { service.device.adapter }
    private var connection: (any PeripheralConnection)? { service.device.connection }
    private var canNotify: Bool {
        !characteristic.properties.isDisjoint(with: [.notify, .indicate])
    }

    private func signal(_ names: [String]) {
        adapter.presence.changed(self, at: path, names)
    }

    // MARK: The link's life

    func reconnected(mtu: Int) {
        if mtu != self.mtu {
            self.mtu = mtu
            if adapter.profile.hasMTUProperty { signal(["MTU"]) }
        }
        if !clients.isEmpty { subscribe() }
    }

    func disconnected() {
        subscription?.cancel()
        subscription = nil
        cancelSubscription = nil
        for (name, client) in clients {
            for call in client.waiting { call.fail(Self.lost) }
            // A session that had begun waits for the next link (register_notify_cb in src/gatt-client.c frees the other).
            clients[name] = client.waiting.isEmpty ? NotifyClient() : nil
        }
        isWriting = false
        readFailed(Self.lost)
        updateNotifying()
    }

    func clientGone(_ client: String) {
        if clients.removeValue(forKey: client) != nil { clientLeft() }
    }

    // MARK: BusInterface

    func handle(_ call: MethodCall) {
        switch call.member {
        case "ReadValue": readValue(call)
        case "WriteValue": writeValue(call)
        case "StartNotify": startNotify(call)
        case "StopNotify": stopNotify(call)
        // Sockets are not simulated; what bluetoothd answers for a characteristic that cannot do it is near enough.
        case "AcquireWrite", "AcquireNotify": call.fail(connection == nil ? .failed("Not connected") : .notSupported)
        default: call.fail(.notSupported)
        }
    }

    func property(_ name: String) -> DBusValue? {
        switch name {
        case "Handle": .uint16(handle)
        case "UUID": .string(characteristic.uuid.longDescription)
        case "Service": .objectPath(service.path)
        case "Value": value.map { .bytes($0) }
        case "Notifying": canNotify ? .bool(isNotifying) : nil
        case "Flags": .strings(CharacteristicFlags.names(characteristic.properties))
        case "WriteAcquired": characteristic.properties.contains(.writeWithoutResponse) ? .bool(false) : nil
        case "NotifyAcquired": characteristic.properties.contains(.notify) ? .bool(false) : nil
        case "MTU": connection == nil ? nil : .uint16(UInt16(clamping: mtu))
        default: nil
        }
    }

    // MARK: Reading

    private func readValue(_ call: MethodCall) {
        guard let connection else { return call.fail(.failed("Not connected")) }
        guard let options = Options(call.arguments.first) else { return call.fail(.invalidArguments) }
        if let read {
            // The same read serves everybody; another offset does not wait.
            guard read.offset == options.offset else { return call.fail(.inProgress) }
            self.read?.calls.append(call)
            return
        }
        read = (options.offset, [call])
        let characteristic = characteristic
        Task { [weak self] in
            do throws(BluetoothError) {
                let whole = try await connection.read(characteristic)
                self?.readEnded(whole, options.offset)
            } catch {
                self?.readFailed(Self.reply(for: error))
            }
        }
    }

    private func readEnded(_ whole: [UInt8], _ offset: UInt16) {
        guard let read else { return }
        self.read = nil
        guard Int(offset) <= whole.count else {
            for call in read.calls { call.fail(.invalidArguments("Invalid offset")) }
            return
        }
        // What was read becomes the cached value, and that is signalled like a notification.
        value = whole
        signal(["Value"])
        for call in read.calls { call.reply([.bytes(Array(whole.dropFirst(Int(offset))))]) }
    }

    private func readFailed(_ error: ErrorReply) {
        for call in read?.calls ?? [] { call.fail(error) }
        read = nil
    }

    // MARK: Writing

    private func writeValue(_ call: MethodCall) {
        guard let connection else { return call.fail(.failed("Not connected")) }
        if isWriting { return call.fail(.inProgress) }
        guard call.arguments.count == 2, let bytes = call.arguments[0].asBytes,
            let options = Options(call.arguments[1])
        else { return call.fail(.invalidArguments) }
        let properties = characteristic.properties
        let isRequest: Bool
        switch options.kind?.lowercased() {
        case nil: isRequest = properties.contains(.write)
        case "request", "reliable": isRequest = true
        case "command": isRequest = false
        default: return call.fail(.notSupported)
        }
        if !isRequest {
            guard options.offset == 0, options.kind != nil || properties.contains(.writeWithoutResponse) else {
                return call.fail(.notSupported)
            }
            guard bytes.count <= mtu - 3 else { return call.fail(.failed("Failed to initiate write")) }
            let characteristic = characteristic
            Task { try? await connection.write(bytes, to: characteristic, type: .withoutResponse) }
            return call.reply()
        }
        // The medium has no writes at an offset; real servers of ours would take them only as prepared writes.
        guard options.offset == 0 else { return call.fail(.invalidArguments("Invalid offset")) }
        guard bytes.count <= Limits.attributeBytes else { return call.fail(.invalidArguments("Invalid Length")) }
        isWriting = true
        let characteristic = characteristic
        Task { [weak self] in
            do throws(BluetoothError) {
                try await connection.write(bytes, to: characteristic, type: .withResponse)
                self?.isWriting = false
                call.reply()
            } catch {
                self?.isWriting = false
                call.fail(Self.reply(for: error))
            }
        }
    }

    private nonisolated static func reply(for error: BluetoothError) -> ErrorReply {
        if let att = error.att { return ErrorReply(att: att) }
        switch error.code {
        case .notConnected: return .failed("Not connected")
        case .invalidArgument: return .invalidArguments("Invalid Length")
        case .notSupported: return .notSupported
        // A lost link, and ATT's own time-out, which ends it: process_error in src/shared/gatt-client.c, for want of a PDU.
        default: return lost
        }
    }

    private nonisolated static let lost = ErrorReply.failed("Operation failed with ATT error: 0x0e")

    // MARK: Notifications

    private func startNotify(_ call: MethodCall) {
        guard service.device.disconnectTimer == nil else { return call.fail(.notConnected) }
        guard canNotify else { return call.fail(.notSupported) }
        if let known = clients[call.sender] {
            // Success also while its first one waits: it has its notify_id by then.
            if known.isActive || !known.waiting.isEmpty { return call.reply() }
            return call.fail(.inProgress)
        }
        guard clients.count < Limits.notifyClients else { return call.fail(.failed("Failed allocate notify session")) }
        clients[call.sender] = NotifyClient()
        // Without a link it is success all the same: the session becomes active with the next link.
        guard connection != nil else { return call.reply() }
        clients[call.sender]?.waiting = [call]
        subscribe()
    }

    /// Subscribes, unless that is done or under way; everybody who waits is answered.
    private func subscribe() {
        if cancelSubscription != nil { return activateClients() }
        guard subscription == nil, let connection else { return }
        let characteristic = characteristic
        subscription = Task { [weak self] in
            do throws(BluetoothError) {
                let subscription = try await connection.subscribe(to: characteristic)
                guard !Task.isCancelled, let self else { return await subscription.cancel() }
                self.cancelSubscription = { await subscription.cancel() }
                if !self.adapter.profile.notifiesBeforeStartNotifyAnswer { self.activateClients() }
                for await value in subscription.values { self.notified(value) }
            } catch {
                if !Task.isCancelled { self?.subscriptionFailed(Self.reply(for: error)) }
            }
        }
        if adapter.profile.notifiesBeforeStartNotifyAnswer {
            // The first notification lets the answer go; without one it comes a moment later.
            _ = adapter.timers.after(.seconds(1)) { [weak self] in
                if self?.cancelSubscription != nil { self?.activateClients() }
            }
        }
    }

    private func activateClients() {
        for (name, client) in clients where !client.isActive {
            clients[name] = NotifyClient(isActive: true)
            if !isNotifying {
                isNotifying = true
                signal(["Notifying"])
            }
            for call in client.waiting { call.reply() }
        }
    }

    private func subscriptionFailed(_ error: ErrorReply) {
        subscription = nil
        for (name, client) in clients where !client.isActive {
            clients[name] = nil
            for call in client.waiting { call.fail(error) }
        }
    }

    /// Each D-Bus client's session signals by itself: N clients, N identical signals for everybody.
    private func notified(_ value: [UInt8]) {
        self.value = value
        for _ in clients { signal(["Value"]) }
        if adapter.profile.notifiesBeforeStartNotifyAnswer { activateClients() }
    }

    private func stopNotify(_ call: MethodCall) {
        guard let client = clients.removeValue(forKey: call.sender) else {
            return call.fail(.failed("No notify session started"))
        }
        for waiting in client.waiting { waiting.fail(.failed("Operation failed")) }
        clientLeft()
        call.reply()
    }

    private func clientLeft() {
        if clients.isEmpty {
            subscription?.cancel()
            subscription = nil
            if let cancel = cancelSubscription { Task { await cancel() } }
            cancelSubscription = nil
        }
        updateNotifying()
    }

    private func updateNotifying() {
        guard isNotifying, !clients.values.contains(where: \.isActive) else { return }
        isNotifying = false
        signal(["Notifying"])
    }

    // MARK: Declarations

    /// The options of ReadValue and WriteValue: parse_options in src/gatt-client.c.
    private struct Options {
        var offset: UInt16 = 0
        var kind: String?

        init?(_ argument: DBusValue?) {
            guard let entries = argument?.asEntries else { return nil }
            for entry in entries {
                switch entry.key.asString?.lowercased() {
                case "offset":
                    guard let offset = entry.value.asUInt16 else { return nil }
                    self.offset = offset
                case "type":
                    guard let kind = entry.value.asString else { return nil }
                    self.kind = kind
                default: break
                }
            }
        }
    }

    private nonisolated static func declare(
        _ characteristic: CharacteristicProperties, _ profile: BehaviourProfile
    ) -> ExportedInterface {
        var properties: [ExportedInterface.Property] = [
            .init("UUID", "s"), .init("Service", "o"), .init("Value", "ay"), .init("Notifying", "b"),
            .init("Flags", "as"), .init("WriteAcquired", "b"), .init("NotifyAcquired", "b"),
        ]
        if profile.hasMTUProperty { properties.append(.init("MTU", "q")) }
        if profile.hasHandleProperty { properties.append(.init("Handle", "q")) }
        return ExportedInterface(
            "org.bluez.GattCharacteristic1",
            methods: [
                .init("ReadValue", "a{sv}", returns: "ay"), .init("WriteValue", "aya{sv}"),
                .init("AcquireWrite", "a{sv}", returns: "hq"), .init("AcquireNotify", "a{sv}", returns: "hq"),
                .init("StartNotify"), .init("StopNotify"),
            ],
            properties: properties
        )
    }
}
