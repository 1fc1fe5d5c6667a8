// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// org.bluez.LEAdvertisingManager1: applications register their advertisements here.
///
/// Source: src/advertising.c of BlueZ, doc/org.bluez.LEAdvertisingManager.rst.
@BlueZSimulatorActor
final class LEAdvertisingManager1: BusInterface {
    private struct Key: Hashable {
        let owner: String
        let path: ObjectPath
    }

    private final class Instance {
        let number: UInt8
        var properties: [String: DBusValue] = [:]
        var data: AdvertisementData?
        var changes: MatchToken?
        var timeout: Task<Void, Never>?

        init(number: UInt8) { self.number = number }
    }

    private static let advertisementInterface = "org.bluez.LEAdvertisement1"

    private let adapter: Adapter
    private var instances: [Key: Instance] = [:]
    /// A central's connection has stopped the advertising, until its end or the next registration.
    private var isPaused = false
    nonisolated let declaration: ExportedInterface

    init(adapter: Adapter) {
        self.adapter = adapter
        declaration = Self.declare(adapter.profile)
    }

    func handle(_ call: MethodCall) {
        guard let path = call.arguments.first?.asObjectPath else { return call.fail(.invalidArguments) }
        let key = Key(owner: call.sender, path: path)
        switch call.member {
        case "RegisterAdvertisement": register(call, key)
        case "UnregisterAdvertisement":
            guard let instance = instances.removeValue(forKey: key) else { return call.fail(.doesNotExist) }
            // Nobody waits for the kernel (client_remove in src/advertising.c).
            call.reply()
            Task { await takeOffAir(instance) }
        default: call.fail(.notSupported)
        }
    }

    // MARK: Registering

    private func register(_ call: MethodCall, _ key: Key) {
        guard instances[key] == nil else { return call.fail(.alreadyExists) }
        let used = Set(instances.values.map(\.number))
        guard let number = (1...Limits.advertisingInstances).first(where: { !used.contains($0) }) else {
            return call.fail(.maximumAdvertisements)
        }
        let instance = Instance(number: number)
        instances[key] = instance
        let presence = adapter.presence
        // bluetoothd's D-Bus client asks for both, and goes by the properties; that the object manager's answer is an
        // error is normal.
        presence.call(key.owner, key.path, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
        presence.call(
            key.owner, key.path, "org.freedesktop.DBus.Properties", "GetAll", [.string(Self.advertisementInterface)]
        ) { [weak self] result in
            guard let self, self.instances[key] === instance else { return call.fail(.registrationNotCompleted) }
            guard let properties = (try? result.get())?.first?.asDictionary, !properties.isEmpty else {
                self.instances[key] = nil
                return call.fail(.advertisementNotRegistered)
            }
            self.parsed(call, key, instance, properties)
        }
    }

    private func parsed(_ call: MethodCall, _ key: Key, _ instance: Instance, _ properties: [String: DBusValue]) {
        do throws(ErrorReply) {
            let data = try AdvertisementData(
                parsing: properties, profile: adapter.profile, adapterName: adapter.adapter1.displayName)
            try checkSize(data)
            instance.data = data
            instance.properties = properties
        } catch {
            instances[key] = nil
            return call.fail(error)
        }
        Task { [weak self, adapter] in
            let isOnAir = await self?.putOnAir(instance) ?? false
            defer { withExtendedLifetime(adapter) {} }
            guard let self, self.instances[key] === instance else { return call.fail(.registrationNotCompleted) }
            guard isOnAir else {
                self.instances[key] = nil
                return call.fail(.advertisementNotRegistered)
            }
            self.registered(key, instance)
            call.reply()
        }
    }

    private func checkSize(_ data: AdvertisementData) throws(ErrorReply) {
        let limit =
            adapter.profile.fallsBackToExtendedAdvertising
            ? Limits.extendedAdvertisementBytes : Limits.legacyAdvertisementBytes
        guard data.longerPart > limit else { return }
        throw adapter.profile.takesTooLongForUnparsable ? .unparsableAdvertisement : .advertisementNotRegistered
    }

    private func putOnAir(_ instance: Instance) async -> Bool {
        guard let data = instance.data else { return false }
        // Strong, here and in `remove`: the adapter may be pulled out meanwhile.
        let adapter = adapter
        // Registering starts the advertising anew, whatever had stopped it.
        isPaused = false
        if data.longerPart > Limits.legacyAdvertisementBytes {
            // Extended advertising: taken, counted, and invisible to every scanner here.
            await adapter.controller.stopAdvertising([instance.number])
            return adapter.isPowered
        }
        do throws(BluetoothError) {
            try await adapter.controller.startAdvertising(instance.number, data.request)
            return true
        } catch {
            return false
        }
    }

    private func registered(_ key: Key, _ instance: Instance) {
        guard let data = instance.data else { return }
        let presence = adapter.presence
        let properties = "org.freedesktop.DBus.Properties"
        if data.hasTxPower, adapter.profile.readsAdvertisingInterval {
            // The kernel tells the power that it has chosen, and bluetoothd hands it on.
            let arguments: [DBusValue] = [
                .string(Self.advertisementInterface), .string("TxPower"), .variant(.int16(7)),
            ]
            presence.call(key.owner, key.path, properties, "Set", arguments)
        }
        if data.wantsInstance {
            let arguments: [DBusValue] = [
                .string(Self.advertisementInterface), .string("Instance"), .variant(.byte(instance.number)),
            ]
            presence.call(key.owner, key.path, properties, "Set", arguments)
        }
        let rule = MatchRule.propertiesChanged(
            sender: key.owner, path: key.path, interface: Self.advertisementInterface)
        instance.changes = presence.follow(rule) { [weak self] message in
            guard let self, self.instances[key] === instance, message.body.count == 3,
                let changed = message.body[1].asDictionary
            else { return }
            self.refresh(instance, changed)
        }
        if data.timeout > 0 {
            instance.timeout = adapter.timers.after(.seconds(Int(data.timeout))) { [weak self] in
                self?.release(key)
            }
        }
        signalCounts()
    }

    /// The application said that its advertisement changed, be it to what it was: it goes to the kernel again, which
    /// starts it anew (properties_changed). What bluetoothd cannot parse is ignored.
    private func refresh(_ instance: Instance, _ changed: [String: DBusValue]) {
        var changed = changed.filter { AdvertisementData.properties.contains($0.key) }
        if changed["Discoverable"] != nil, changed["Discoverable"] == instance.properties["Discoverable"] {
            // Told what it knows, it forgets it, and that is no reason to refresh (ad_replace_data in src/shared/ad.c).
            changed["Discoverable"] = nil
            instance.properties["Discoverable"] = nil
        }
        let properties = instance.properties.merging(changed) { $1 }
        guard !changed.isEmpty,
            let data = try? AdvertisementData(
                parsing: properties, profile: adapter.profile, adapterName: adapter.adapter1.displayName)
        else { return }
        guard data.longerPart <= Limits.keptAdvertisementBytes else { return }
        // What it knows of the advertisement and what is on the air are two things.
        instance.properties = properties
        guard (try? checkSize(data)) != nil else {
            if adapter.profile.diesOfRefusedRefreshes { adapter.onCrash?() }
            return
        }
        instance.data = data
        Task { _ = await self.putOnAir(instance) }
    }

    // MARK: Removing

    private func remove(_ key: Key) async {
        if let instance = instances.removeValue(forKey: key) { await takeOffAir(instance) }
    }

    private func takeOffAir(_ instance: Instance) async {
        let adapter = adapter
        instance.changes?.cancel()
        instance.timeout?.cancel()
        await adapter.controller.stopAdvertising([instance.number])
        withExtendedLifetime(adapter) { signalCounts() }
    }

    /// bluetoothd gives an advertisement up and says so.
    private func release(_ key: Key) {
        guard instances[key] != nil else { return }
        adapter.presence.call(key.owner, key.path, Self.advertisementInterface, "Release")
        Task { await remove(key) }
    }

    func releaseAll() {
        for key in instances.keys { release(key) }
    }

    func clientGone(_ client: String) {
        for key in instances.keys where key.owner == client {
            Task { await remove(key) }
        }
    }

    /// The daemon ends: nothing is signalled any more.
    func reset() {
        for instance in instances.values {
            instance.changes?.cancel()
            instance.timeout?.cancel()
        }
        instances = [:]
    }

    // MARK: What stops advertising without anybody being told

    /// The controller forgets its advertising with its power. `ActiveInstances` stays, and no Release comes
    /// (bluez/bluez#644, bluez/bluez#1015): only registering again helps.
    func powerLost() {
        isPaused = false
    }

    func centralConnected() async {
        guard adapter.profile.stopsAdvertisingWhileConnected, !isPaused, !instances.isEmpty else { return }
        isPaused = true
        await adapter.controller.stopAdvertising(instances.values.map(\.number))
    }

    func centralsGone() {
        guard isPaused else { return }
        isPaused = false
        for instance in instances.values where instance.data != nil {
            Task { _ = await putOnAir(instance) }
        }
    }

    private func signalCounts() {
        adapter.presence.changed(self, at: adapter.path, ["SupportedInstances", "ActiveInstances"])
    }

    // MARK: Properties

    func property(_ name: String) -> DBusValue? {
        switch name {
        case "ActiveInstances": .byte(UInt8(clamping: instances.count))
        case "SupportedInstances":
            .byte(UInt8(clamping: Int(Limits.advertisingInstances) - instances.count))
        case "SupportedIncludes": .strings(["tx-power", "appearance", "local-name"])
        case "SupportedSecondaryChannels": .strings(["1M", "2M"])
        case "SupportedFeatures": .strings(["CanSetTxPower"])
        case "SupportedCapabilities":
            .variantDictionary([
                "MaxAdvLen": .byte(UInt8(Limits.legacyAdvertisementBytes)),
                "MaxScnRspLen": .byte(UInt8(Limits.legacyAdvertisementBytes)),
                "MinTxPower": .int16(-34), "MaxTxPower": .int16(7),
            ])
        default: nil
        }
    }

    private nonisolated static func declare(_ profile: BehaviourProfile) -> ExportedInterface {
        var properties: [ExportedInterface.Property] = [
            .init("ActiveInstances", "y"), .init("SupportedInstances", "y"), .init("SupportedIncludes", "as"),
            .init("SupportedSecondaryChannels", "as"),
        ]
        if profile.hasAdvertisingCapabilities {
            properties += [.init("SupportedFeatures", "as"), .init("SupportedCapabilities", "a{sv}")]
        }
        return ExportedInterface(
            "org.bluez.LEAdvertisingManager1",
            methods: [.init("RegisterAdvertisement", "oa{sv}"), .init("UnregisterAdvertisement", "o")],
            properties: properties
        )
    }
}
