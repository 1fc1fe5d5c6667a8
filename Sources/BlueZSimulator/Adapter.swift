// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus
internal import SimulatedRadio

/// One adapter with everything that bluetoothd knows about it. Its interfaces stand in files of their own.
@BlueZSimulatorActor
final class Adapter: ControllerDelegate {
    let name: String
    let path: ObjectPath
    let address: BluetoothAddress
    let presence: BusPresence
    let profile: BehaviourProfile
    let controller: MediumController
    let timers: Timers
    private(set) var isPowered: Bool
    private(set) var devices: [BluetoothAddress: Device1] = [:]
    /// The devices that the running scan has reported: the ones whose readings end with it.
    private var found: Set<BluetoothAddress> = []

    /// What stands in files of its own. The parts own the adapter as it owns them, until it is released: whatever they
    /// have under way then still finds it.
    @BlueZSimulatorActor
    private final class Parts {
        let adapter1: Adapter1
        let discovery: Discovery
        let server: LocalServer
        let gattManager: GattManager1
        let advertising: LEAdvertisingManager1

        init(_ adapter: Adapter) {
            adapter1 = Adapter1(adapter: adapter)
            discovery = Discovery(adapter: adapter)
            server = LocalServer(adapter: adapter)
            gattManager = GattManager1(adapter: adapter)
            advertising = LEAdvertisingManager1(adapter: adapter)
        }
    }

    private var kept: Parts?
    private var isReleased = false

    private var parts: Parts {
        if let kept { return kept }
        let parts = Parts(self)
        // Whoever comes late gets parts that nobody else will see.
        if !isReleased { kept = parts }
        return parts
    }

    var adapter1: Adapter1 { parts.adapter1 }
    var discovery: Discovery { parts.discovery }
    var server: LocalServer { parts.server }
    var gattManager: GattManager1 { parts.gattManager }
    var advertising: LEAdvertisingManager1 { parts.advertising }

    init(name: String, path: ObjectPath, presence: BusPresence, profile: BehaviourProfile, controller: MediumController)
    {
        self.name = name
        self.path = path
        self.presence = presence
        self.profile = profile
        self.controller = controller
        address = controller.address
        timers = Timers(clock: controller.clock)
        isPowered = controller.isPowered
    }

    /// Puts the adapter on the bus: InterfacesAdded.
    func appear() {
        let links = controller.attach(self)
        isPowered = controller.isPowered
        presence.export([adapter1, gattManager, advertising], at: path, owner: self)
        for link in links {
            // Connected is all that it ever learns of them (MGMT_OP_GET_CONNECTIONS): nobody answers on their ATT channel.
            _ = device(link.address) { device in
                device.leftover = link
                device.isConnected = true
            }
        }
    }

    /// Takes the adapter and all its devices from the bus: InterfacesRemoved.
    func disappear() {
        for device in devices.values { drop(device) }
        devices = [:]
        releaseAll(.stopped)
        presence.unexport(path)
    }

    /// Ends everything without a word on the bus.
    func releaseAll(_ end: DaemonEnd) {
        for device in devices.values { device.discard(end) }
        devices = [:]
        discovery.reset()
        server.reset()
        advertising.reset()
        controller.detach(end)
        isReleased = true
        kept = nil
    }

    func clientGone(_ client: String) {
        discovery.clientGone(client)
        gattManager.clientGone(client)
        advertising.clientGone(client)
        for device in devices.values {
            for service in device.services {
                for characteristic in service.characteristics { characteristic.clientGone(client) }
            }
        }
    }

    // MARK: Devices

    func device(at path: ObjectPath) -> Device1? {
        devices.values.first { $0.path == path }
    }

    /// The device of an address, made and exported if it is new. `prepare` runs before the export, so that
    /// InterfacesAdded shows what it sets.
    func device(_ address: BluetoothAddress, prepare: (Device1) -> Void = { _ in }) -> Device1? {
        if let known = devices[address] {
            prepare(known)
            return known
        }
        let element = "dev_" + String(address.description.map { $0 == ":" ? "_" : $0 })
        guard let path = path.appending(element) else { return nil }
        makeRoom()
        let device = Device1(address: address, path: path, adapter: self)
        devices[address] = device
        prepare(device)
        device.heard()
        presence.export([device], at: path, owner: self)
        return device
    }

    private func makeRoom() {
        guard devices.count >= Limits.devices else { return }
        let idle = devices.values.filter { !$0.isConnected && $0.pendingConnect == nil }
        let oldest = idle.min { ($0.isTemporary ? 0 : 1, $0.lastHeard) < ($1.isTemporary ? 0 : 1, $1.lastHeard) }
        if let oldest { remove(oldest) }
    }

    func remove(_ device: Device1) {
        guard devices[device.address] === device else { return }
        devices[device.address] = nil
        found.remove(device.address)
        drop(device)
    }

    private func drop(_ device: Device1) {
        device.discard(.stopped)
        presence.unexport(device.path)
    }

    // MARK: The scan

    /// Ends the daemon.
    var onCrash: (() -> Void)?

    func heard(_ report: AirReport) {
        let filter = discovery.merged
        if profile.diesOfServiceFilters, discovery.isActive, !filter.uuids.isEmpty,
            !report.advertisement.serviceUUIDs.isEmpty
        {
            onCrash?()
            return
        }
        guard discovery.isActive, filter.admits(report.advertisement, rssi: report.rssi, address: report.address)
        else { return }
        found.insert(report.address)
        if let known = devices[report.address] {
            known.signal(known.take(report, filter: filter))
        } else if profile.splitsDeviceProperties {
            guard let device = device(report.address) else { return }
            for name in device.take(report, filter: filter) { device.signal([name]) }
        } else {
            _ = device(report.address) { _ = $0.take(report, filter: filter) }
        }
    }

    /// The scan has ended: readings are invalidated, and the temporary devices' time goes on.
    func scanEnded() {
        let addresses = found
        found = []
        for address in addresses { devices[address]?.invalidateReadings() }
    }

    // MARK: Power

    /// Powered was set, or the radio was switched.
    func setPowered(_ powered: Bool) {
        guard powered != isPowered else { return }
        controller.setPowered(powered)
        powerChanged(powered)
    }

    func powerChanged(_ powered: Bool) {
        guard powered != isPowered else { return }
        isPowered = powered
        if powered {
            adapter1.signal(profile.hasPowerState ? ["Powered", "PowerState"] : ["Powered"])
            return
        }
        // As seen on the real stack: devices first, then the applications, then the adapter itself.
        discovery.reset()
        scanEnded()
        for device in devices.values where device.isConnected || device.pendingConnect != nil {
            linkEnded(device, reason: .adapterLost)
        }
        server.dropCentrals()
        advertising.powerLost()
        for device in devices.values where device.isTemporary { remove(device) }
        adapter1.signal(profile.hasPowerState ? ["Powered", "PowerState"] : ["Powered"])
    }

    // MARK: Centrals

    func centralConnected(_ central: CentralID, address: BluetoothAddress, mtu: Int) {
        guard isPowered else { return }
        let isKnown = devices[address] != nil
        let device = device(address) { device in
            device.central = central
            device.isConnected = true
        }
        guard let device else { return }
        device.stopTemporaryTimer()
        if isKnown { device.signal(["Connected"]) }
        server.centralConnected(central, device: device, mtu: mtu)
        Task {
            await advertising.centralConnected()
            // bluetoothd looks at the services of whoever connects; a central has none to show.
            if device.central == central { device.resolveWithoutServices() }
        }
    }

    func centralDisconnected(_ central: CentralID, reason: DisconnectReason) {
        let device = server.centralDisconnected(central)
        if let device, device.central == central {
            device.central = nil
            if !device.hasLink { linkEnded(device, reason: reason) }
        }
        if !server.hasCentrals { advertising.centralsGone() }
    }

    func leftoverLost(_ link: LinkInfo, reason: DisconnectReason) {
        guard let device = devices[link.address], device.leftover == link else { return }
        device.leftover = nil
        if !device.hasLink { linkEnded(device, reason: reason) }
    }

    func centralRead(
        _ central: CentralID, _ characteristic: ServedCharacteristicID, offset: Int,
        answer: @escaping @BlueZSimulatorActor (Result<[UInt8], ATTError>) -> Void
    ) {
        server.read(central, characteristic, offset: offset, answer: answer)
    }

    func centralWrote(
        _ central: CentralID, _ characteristic: ServedCharacteristicID, _ value: [UInt8], offset: Int,
        answer: @escaping @BlueZSimulatorActor (ATTError?) -> Void
    ) {
        server.write(central, characteristic, value, offset: offset, answer: answer)
    }

    func centralSubscribed(_ central: CentralID, _ characteristic: ServedCharacteristicID) {
        server.subscribe(central, characteristic)
    }

    func centralUnsubscribed(_ central: CentralID, _ characteristic: ServedCharacteristicID) {
        server.unsubscribe(central, characteristic)
    }
}
