// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// The local GATT database with its applications: what centrals ask is handed to them over D-Bus.
///
/// Source: src/gatt-database.c of BlueZ.
@BlueZSimulatorActor
final class LocalServer {
    private final class Central {
        let device: Device1
        let mtu: Int
        var subscriptions: Set<ServedCharacteristicID> = []
        var pending = 0

        init(device: Device1, mtu: Int) {
            self.device = device
            self.mtu = mtu
        }
    }

    private struct Registered {
        let application: GattApplication
        var changes: MatchToken?
    }

    private static let interface = "org.bluez.GattCharacteristic1"

    private let adapter: Adapter
    private var applications: [UInt64: Registered] = [:]
    private var centrals: [CentralID: Central] = [:]
    /// How many subscriptions an application has been told of: StopNotify comes when the last one goes.
    private var notifyCounts: [ServedCharacteristicID: Int] = [:]
    /// When what is notified began to be gathered.
    private var gatheringSince: ContinuousClock.Instant?

    init(adapter: Adapter) {
        self.adapter = adapter
    }

    var hasCentrals: Bool { !centrals.isEmpty }

    /// The primary services, which Adapter1.UUIDs shows beside bluetoothd's own.
    var advertisedUUIDs: [BluetoothUUID] {
        let own: Set<BluetoothUUID> = [0x1800, 0x1801, 0x180A]
        let theirs = applications.values.flatMap { $0.application.services }.filter(\.isPrimary).map(\.uuid)
        return own.union(theirs).sorted()
    }

    // MARK: Applications

    func add(_ application: GattApplication, _ id: UInt64) async throws(BluetoothError) {
        let services = application.services.map { service in
            LocalService(
                service.uuid, isPrimary: service.isPrimary,
                characteristics: service.characteristics.map { LocalCharacteristic($0.uuid, $0.flags.properties) })
        }
        // Strong: the adapter may be pulled out meanwhile.
        let adapter = adapter
        defer { withExtendedLifetime(adapter) {} }
        try await adapter.controller.serve(id, services)
        let rule = MatchRule.propertiesChanged(
            sender: application.owner, pathNamespace: application.root == .root ? nil : application.root,
            interface: Self.interface)
        let changes = adapter.presence.follow(rule) { [weak self] message in self?.propertiesChanged(message, id) }
        applications[id] = Registered(application: application, changes: changes)
        setHandles(application)
    }

    /// An object whose Handle is 0 is told what it got.
    private func setHandles(_ application: GattApplication) {
        var handle: UInt16 = 10
        func set(_ path: ObjectPath, _ interface: String, _ wanted: Bool) {
            if wanted {
                adapter.presence.call(
                    application.owner, path, "org.freedesktop.DBus.Properties", "Set",
                    [.string(interface), .string("Handle"), .variant(.uint16(handle))])
            }
        }
        for service in application.services {
            set(service.path, "org.bluez.GattService1", service.wantsHandle)
            handle &+= 1
            for characteristic in service.characteristics {
                set(characteristic.path, Self.interface, characteristic.wantsHandle)
                let notifies = !characteristic.flags.properties.isDisjoint(with: [.notify, .indicate])
                handle &+= notifies ? 3 : 2
            }
        }
    }

    func remove(_ id: UInt64) {
        applications.removeValue(forKey: id)?.changes?.cancel()
        for central in centrals.values { central.subscriptions = central.subscriptions.filter { $0.application != id } }
        notifyCounts = notifyCounts.filter { $0.key.application != id }
        let controller = adapter.controller
        Task { await controller.endServing(id) }
    }

    func reset() {
        for registered in applications.values { registered.changes?.cancel() }
        applications = [:]
        centrals = [:]
        notifyCounts = [:]
    }

    private func find(
        _ id: ServedCharacteristicID
    ) -> (application: GattApplication, characteristic: GattApplication.Characteristic)? {
        guard let application = applications[id.application]?.application,
            application.services.indices.contains(id.position.service)
        else { return nil }
        let characteristics = application.services[id.position.service].characteristics
        guard characteristics.indices.contains(id.position.characteristic) else { return nil }
        return (application, characteristics[id.position.characteristic])
    }

    // MARK: Centrals

    func centralConnected(_ id: CentralID, device: Device1, mtu: Int) {
        centrals[id] = Central(device: device, mtu: mtu)
    }

    /// - Returns: The device, if the central was known.
    func centralDisconnected(_ id: CentralID) -> Device1? {
        guard let central = centrals.removeValue(forKey: id) else { return nil }
        // No simulated central is bonded, so its subscriptions end with its link.
        for characteristic in central.subscriptions { subscriptionEnded(characteristic) }
        return central.device
    }

    func dropCentrals() {
        for id in Array(centrals.keys) {
            let device = centralDisconnected(id)
            device?.central = nil
        }
    }

    // MARK: Reads and writes

    private func options(_ central: Central, offset: Int) -> DBusValue {
        let overstated = adapter.profile.overstatedMTU ?? 0
        var pairs: [(String, DBusValue)] = [("device", .objectPath(central.device.path))]
        if offset > 0 { pairs.append(("offset", .uint16(UInt16(clamping: offset)))) }
        pairs.append(("link", .string("LE")))
        pairs.append(("mtu", .uint16(UInt16(clamping: max(central.mtu, overstated)))))
        return .variantDictionary(pairs: pairs)
    }

    func read(
        _ id: CentralID, _ characteristicID: ServedCharacteristicID, offset: Int,
        answer: @escaping @BlueZSimulatorActor (Result<[UInt8], ATTError>) -> Void
    ) {
        guard let central = centrals[id], let (application, characteristic) = find(characteristicID) else {
            return answer(.failure(.unlikelyError))
        }
        if characteristic.flags.needsEncryptionToRead { return answer(.failure(.insufficientEncryption)) }
        let profile = adapter.profile
        ask(central, application, characteristic, "ReadValue", [options(central, offset: offset)]) { result in
            switch result {
            case .success(let body):
                guard let value = body.first?.asBytes else { return answer(.failure(.requestNotSupported)) }
                answer(.success(Array(value.prefix(Limits.attributeBytes))))
            case .failure(let error):
                answer(.failure(Self.att(error, notPermitted: .readNotPermitted, profile: profile)))
            }
        }
    }

    func write(
        _ id: CentralID, _ characteristicID: ServedCharacteristicID, _ value: [UInt8], offset: Int,
        answer: @escaping @BlueZSimulatorActor (ATTError?) -> Void
    ) {
        guard let central = centrals[id], let (application, characteristic) = find(characteristicID) else {
            return answer(.unlikelyError)
        }
        if characteristic.flags.needsEncryptionToWrite { return answer(.insufficientEncryption) }
        // With "write-without-response" among the flags bluetoothd acknowledges before the application has answered.
        let acknowledgesEarly = characteristic.flags.properties.contains(.writeWithoutResponse)
        if acknowledgesEarly { answer(nil) }
        let body: [DBusValue] = [.bytes(value), options(central, offset: offset)]
        let profile = adapter.profile
        let deliver: @BlueZSimulatorActor () -> Void = { [weak self] in
            self?.ask(central, application, characteristic, "WriteValue", body) { result in
                guard !acknowledgesEarly else { return }
                switch result {
                case .success: answer(nil)
                case .failure(let error):
                    answer(Self.att(error, notPermitted: .writeNotPermitted, profile: profile))
                }
            }
        }
        guard characteristic.hasWriteAcquired else { return deliver() }
        // A socket would be used for this and all later writes; here the call alone is made, then WriteValue.
        adapter.presence.call(
            application.owner, characteristic.path, Self.interface, "AcquireWrite", [options(central, offset: 0)]
        ) { result in
            // Unlike AcquireNotify's, its refusal is the write's (acquire_write_reply).
            if case .failure(let error) = result {
                let code = Self.att(error, notPermitted: .writeNotPermitted, profile: profile)
                if code != .unlikelyError { return acknowledgesEarly ? () : answer(code) }
            }
            deliver()
        }
    }

    /// Calls the application, which has 5 s on the medium's clock; a later answer is thrown away.
    private func ask(
        _ central: Central, _ application: GattApplication, _ characteristic: GattApplication.Characteristic,
        _ member: String, _ body: [DBusValue],
        completion: @escaping @BlueZSimulatorActor (Result<[DBusValue], DBusError>) -> Void
    ) {
        guard central.pending < Limits.pendingRequests else {
            return completion(.failure(DBusError(.limitExceeded, "too many requests wait")))
        }
        central.pending += 1
        let question = Question { result in
            central.pending -= 1
            completion(result)
        }
        let timer = adapter.timers.after(Limits.applicationTimeout) {
            question.answer(.failure(DBusError(.timedOut, "the application has not answered")))
        }
        adapter.presence.call(application.owner, characteristic.path, Self.interface, member, body) { result in
            timer.cancel()
            question.answer(result)
        }
    }

    @BlueZSimulatorActor
    private final class Question {
        private var completion: (@BlueZSimulatorActor (Result<[DBusValue], DBusError>) -> Void)?

        init(_ completion: @escaping @BlueZSimulatorActor (Result<[DBusValue], DBusError>) -> Void) {
            self.completion = completion
        }

        func answer(_ result: Result<[DBusValue], DBusError>) {
            let completion = completion
            self.completion = nil
            completion?(result)
        }
    }

    private static func att(_ error: DBusError, notPermitted: ATTError, profile: BehaviourProfile) -> ATTError {
        guard let name = error.name else { return .unlikelyError }
        return ATTError(
            applicationError: name, error.message, notPermitted: notPermitted, profile: profile)
    }

    // MARK: Subscriptions

    /// A central enabled notifications: ccc_write_cb. The central has its answer already.
    func subscribe(_ id: CentralID, _ characteristicID: ServedCharacteristicID) {
        guard let central = centrals[id], let (application, characteristic) = find(characteristicID),
            central.subscriptions.insert(characteristicID).inserted
        else { return }
        guard characteristic.hasNotifyAcquired else {
            return startNotify(application, characteristic, characteristicID)
        }
        adapter.presence.call(
            application.owner, characteristic.path, Self.interface, "AcquireNotify", [options(central, offset: 0)]
        ) { [weak self] result in
            guard let self else { return }
            // These two end the matter; any other error means: use StartNotify and signals.
            if case .failure(let error) = result,
                error.code == .noReply || error.code == .timedOut || error.name == "org.bluez.Error.Failed"
            {
                return
            }
            // Whether the central still wants it is not looked at: one that has left meanwhile is counted from here on, and
            // nobody is told that it left (acquire_notify_reply, all versions to 5.87).
            guard self.find(characteristicID) != nil else { return }
            self.startNotify(application, characteristic, characteristicID)
        }
    }

    /// bluetoothd calls it for every subscription, not only the first.
    private func startNotify(
        _ application: GattApplication, _ characteristic: GattApplication.Characteristic, _ id: ServedCharacteristicID
    ) {
        notifyCounts[id, default: 0] += 1
        adapter.presence.call(application.owner, characteristic.path, Self.interface, "StartNotify")
    }

    func unsubscribe(_ id: CentralID, _ characteristicID: ServedCharacteristicID) {
        guard centrals[id]?.subscriptions.remove(characteristicID) != nil else { return }
        subscriptionEnded(characteristicID)
    }

    private func subscriptionEnded(_ id: ServedCharacteristicID) {
        guard let count = notifyCounts[id], count > 0 else { return }
        notifyCounts[id] = count - 1
        guard count == 1, let (application, characteristic) = find(id) else { return }
        adapter.presence.call(application.owner, characteristic.path, Self.interface, "StopNotify")
    }

    // MARK: Notifications

    /// A changed Value is a notification to every subscriber, whoever it was meant for; an invalidated one is an
    /// empty notification (property_changed_cb).
    private func propertiesChanged(_ message: DBusMessage, _ application: UInt64) {
        guard message.body.count == 3, message.body[0].asString == Self.interface, let path = message.path,
            let changed = message.body[1].asDictionary
        else { return }
        if let value = changed["Value"] {
            guard let bytes = value.asBytes else { return }
            notify(bytes, path, application)
        }
        if message.body[2].asStrings?.contains("Value") == true { notify([], path, application) }
    }

    private func notify(_ value: [UInt8], _ path: ObjectPath, _ application: UInt64) {
        guard let services = applications[application]?.application.services else { return }
        if adapter.profile.losesQuickNotifications {
            let now = adapter.timers.clock.now
            if let gatheringSince, now < gatheringSince + Limits.gathering { return }
            gatheringSince = now
        }
        for (service, object) in services.enumerated() {
            guard let index = object.characteristics.firstIndex(where: { $0.path == path }) else { continue }
            let id = ServedCharacteristicID(
                application: application, position: LocalCharacteristicID(service: service, characteristic: index))
            // Too long is cut without a word, on either side.
            return adapter.controller.notify(
                value, on: id, header: adapter.profile.usesMultipleNotificationPDU ? 5 : 3)
        }
    }
}
