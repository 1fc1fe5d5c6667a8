// SPDX-License-Identifier: MIT

internal import BluetoothLE
public import DBus
public import SimulatedRadio

/// org.bluez on any bus, with the adapters of a simulated medium behind it.
///
/// ```swift
/// let medium = SimulatedMedium(clock: ContinuousClock())
/// let simulator = try await BlueZSimulator.start(on: .address(bus), medium: medium, adapters: 2)
/// // DBUS_SYSTEM_BUS_ADDRESS=<bus> busctl tree org.bluez
/// await simulator.stop()
/// ```
///
/// What happens on the air is told the medium: other radios of it are phones that come and go. What happens to the
/// daemon and the adapters' power is told here.
@BlueZSimulatorActor
public final class BlueZSimulator {
    public nonisolated let medium: SimulatedMedium
    public nonisolated let bus: BusAddress
    public nonisolated let profile: BehaviourProfile
    /// The adapters' radios, by name (`hci0`, `hci1`, …): for the medium's switches, such as the RSSI of a pair.
    public nonisolated let radios: [String: SimulatedRadio]

    private let order: [String]
    private var plugged: Set<String>
    private var presence: BusPresence?
    private(set) var adapters: [String: Adapter] = [:]
    private var agents = AgentManager1()
    /// The daemon's start while it is under way, and how often it has been ended: a start that was overtaken by an end
    /// does not become a daemon.
    private var starting: Task<DBusError?, Never>?
    private var ends = 0
    /// By adapter: until when the kernel goes on discovering for a daemon that was killed.
    private var discoveryHeldUpUntil: [String: ContinuousClock.Instant] = [:]

    private init(
        bus: BusAddress, medium: SimulatedMedium, profile: BehaviourProfile, order: [String],
        radios: [String: SimulatedRadio]
    ) {
        self.bus = bus
        self.medium = medium
        self.profile = profile
        self.order = order
        self.radios = radios
        plugged = Set(order)
    }

    isolated deinit {
        for adapter in adapters.values { adapter.releaseAll(.stopped) }
        presence?.close()
    }

    /// Starts the simulator; returns once `org.bluez` is on the bus with all its adapters.
    ///
    /// - Parameters:
    ///   - adapters: How many adapters, 0 to 16, named `hci0` and up, powered.
    ///   - profile: Which BlueZ to be.
    /// - Throws: What `DBusConnection.open` and `requestName` throw: `noBus`, `accessDenied`, `addressInUse` when
    ///   another org.bluez is there.
    public static func start(
        on bus: BusAddress, medium: SimulatedMedium, adapters: Int = 1, profile: BehaviourProfile = .bluez566
    ) async throws(DBusError) -> BlueZSimulator {
        guard (0...Limits.adapters).contains(adapters) else {
            throw DBusError(.invalidArgument, "a simulator has 0 to \(Limits.adapters) adapters, not \(adapters)")
        }
        let order = (0..<adapters).map { "hci\($0)" }
        var radios: [String: SimulatedRadio] = [:]
        for name in order {
            radios[name] = medium.addAdapter(name: name, configuration: configuration(profile))
        }
        let simulator = BlueZSimulator(bus: bus, medium: medium, profile: profile, order: order, radios: radios)
        try await simulator.revive()
        return simulator
    }

    /// Runs a simulator with real time until the task is cancelled or the bus is lost.
    ///
    /// - Parameter onReady: Called once `org.bluez` is on the bus.
    public static func run(
        on bus: BusAddress, adapters: Int = 2, profile: BehaviourProfile = .bluez566, seed: UInt64 = 1,
        conditions: Conditions = Conditions(connectionTime: .milliseconds(100), discoveryTime: .milliseconds(100)),
        onReady: @Sendable (BlueZSimulator) async -> Void = { _ in }
    ) async throws(DBusError) {
        let medium = SimulatedMedium(clock: ContinuousClock(), seed: seed, conditions: conditions)
        let simulator = try await start(on: bus, medium: medium, adapters: adapters, profile: profile)
        guard let connection = simulator.presence?.connection else { return }
        await onReady(simulator)
        let reason = await connection.closed
        await simulator.stop()
        if reason.code != .cancelled, reason.code != .closed { throw reason }
    }

    private static func configuration(_ profile: BehaviourProfile) -> AdapterConfiguration {
        AdapterConfiguration(
            notificationScope: .central,
            longWrites: profile.splitsLongWrites ? .split(at: 504) : .whole,
            longestWrite: profile.longestWrite,
            longestPreparedWrite: profile.longestPreparedWrite,
            maximumAdvertisements: Int(Limits.advertisingInstances)
        )
    }

    /// - Parameter before: How often it had been ended when this was asked for.
    private func begin(_ before: Int) async throws(DBusError) {
        let connection = try await DBusConnection.open(bus, on: BlueZSimulatorActor.loop)
        let presence = BusPresence(connection: connection)
        do throws(DBusError) {
            try await presence.open()
            try checkStarting(before)
            presence.onClientGone = { [weak self] client in self?.clientGone(client) }
            self.presence = presence
            agents = AgentManager1()
            presence.export([agents], at: "/org/bluez", owner: agents)
            for name in order where plugged.contains(name) { add(name, presence) }
            try await presence.takeName()
            try checkStarting(before)
        } catch {
            if self.presence === presence { end(.stopped) } else { presence.close() }
            throw error
        }
        // bluetoothd ends with its bus.
        Task { [weak self, weak presence] in
            _ = await connection.closed
            guard let self, let presence, self.presence === presence else { return }
            self.end(.stopped)
        }
    }

    private func checkStarting(_ before: Int) throws(DBusError) {
        if ends != before { throw DBusError(.closed, "the simulator was ended while it started") }
    }

    private func add(_ name: String, _ presence: BusPresence) {
        let root: ObjectPath = "/org/bluez"
        guard let radio = radios[name], let path = root.appending(name) else { return }
        let adapter = Adapter(
            name: name, path: path, presence: presence, profile: profile, controller: MediumController(radio: radio))
        adapters[name] = adapter
        adapter.onCrash = { [weak self] in self?.crash() }
        adapter.discovery.heldUpUntil = discoveryHeldUpUntil[name]
        adapter.appear()
    }

    private func clientGone(_ client: String) {
        agents.clientGone(client)
        for adapter in adapters.values { adapter.clientGone(client) }
    }

    private func end(_ end: DaemonEnd) {
        ends += 1
        // Who is killed says nothing on its way out.
        if end == .killed { presence?.close() }
        for adapter in adapters.values { adapter.releaseAll(end) }
        adapters = [:]
        presence?.close()
        presence = nil
    }

    // MARK: The daemon's life

    /// Ends the simulator as SIGTERM ends bluetoothd: links are taken down, and applications are told that nobody is
    /// subscribed and that their advertisements are released.
    public func stop() async {
        for adapter in adapters.values {
            adapter.server.dropCentrals()
            adapter.advertising.releaseAll()
        }
        end(.stopped)
    }

    /// Ends the daemon as `kill -9` does: its name goes, and nobody is told anything else.
    ///
    /// What the kernel has goes on without it: advertisements stay on the air until the next daemon, links stay up for
    /// 2 s (ours) or 4 s (the centrals'), and nobody answers on them. The next daemon finds those that are left
    /// `Connected`.
    public func crash() {
        let end = medium.clock.now.advanced(by: profile.discoveryOutlivesCrash)
        for (name, adapter) in adapters where adapter.discovery.isActive { discoveryHeldUpUntil[name] = end }
        self.end(.killed)
    }

    /// Brings a daemon back that has crashed or was stopped: everything is there again, and nothing is registered.
    ///
    /// - Throws: What `start` throws, and `closed` when it is ended before it is there.
    public func revive() async throws(DBusError) {
        while let starting { _ = await starting.value }
        guard presence == nil else { return }
        let before = ends
        let start = Task { () -> DBusError? in
            defer { starting = nil }
            do throws(DBusError) {
                try await begin(before)
                return nil
            } catch {
                return error
            }
        }
        starting = start
        if let failure = await start.value { throw failure }
    }

    /// Kills the daemon and brings it back.
    ///
    /// - Parameter downtime: How long the name has no owner, on the medium's clock.
    public func restart(downFor downtime: Duration = .zero) async throws(DBusError) {
        crash()
        if downtime > .zero { try? await medium.clock.sleep(for: downtime) }
        try await revive()
    }

    /// Whether the daemon is on the bus.
    public var isRunning: Bool { presence != nil && starting == nil }

    // MARK: Adapters

    /// Switches an adapter as rfkill or `Adapter1.Powered` does. Unknown names are ignored.
    public func setPowered(_ powered: Bool, adapter name: String) {
        if let adapter = adapters[name] { adapter.setPowered(powered) } else { radios[name]?.setPowered(powered) }
    }

    /// Pulls an adapter out: InterfacesRemoved for it and its devices.
    public func unplug(_ name: String) {
        guard plugged.remove(name) != nil else { return }
        adapters.removeValue(forKey: name)?.disappear()
        radios[name]?.unplug()
    }

    /// Puts an adapter back: InterfacesAdded, powered (bluetoothd's `AutoEnable`), with nothing registered.
    public func plug(_ name: String) {
        guard let radio = radios[name], plugged.insert(name).inserted else { return }
        radio.plug()
        radio.setPowered(true)
        if let presence { add(name, presence) }
    }
}

extension BlueZSimulator {
    /// Whether a Connect of this device's object waits for its answer.
    package func isConnecting(_ path: ObjectPath) -> Bool {
        adapters.values.contains { $0.device(at: path)?.pendingConnect != nil }
    }
}
