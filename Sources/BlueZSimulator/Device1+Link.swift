// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// One Connect: the application that waits, and what is under way for it.
@BlueZSimulatorActor
final class ConnectAttempt {
    let call: MethodCall
    var task: Task<Void, Never>?

    init(_ call: MethodCall) { self.call = call }
}

// Connecting and disconnecting.
extension Device1 {
    func connect(_ call: MethodCall) {
        if pendingConnect != nil {
            // Since 5.82 or so; before, device_connect_le's -EALREADY came out as its text.
            return call.fail(
                adapter.profile.hasAdapterVersion ? .inProgress : .failed("Operation already in progress"))
        }
        // An answer of success for a link that is there already, whoever made it.
        if isConnected { return call.reply() }
        // bt_io_connect fails without a route, and device_connect_le makes EIO of it.
        guard adapter.isPowered else { return call.fail(.failed("Input/output error")) }
        if !hasPrivateAddress {
            isTemporary = false
            stopTemporaryTimer()
        } else {
            heard()
        }
        let attempt = ConnectAttempt(call)
        pendingConnect = attempt
        let address = address
        let controller = adapter.controller
        attempt.task = Task { [weak self] in
            do throws(BluetoothError) {
                let link = try await controller.connect(to: address, timeout: Limits.connectTimeout)
                guard let self, self.pendingConnect === attempt else { return await link.disconnect() }
                self.connected(link, attempt)
            } catch {
                // One that was called off has been answered, and another may be under way.
                if let self, self.pendingConnect === attempt { self.connectFailed(error, attempt) }
            }
        }
    }

    private func connectFailed(_ error: BluetoothError, _ attempt: ConnectAttempt) {
        pendingConnect = nil
        // Nearly every failure has this text in real life: the kernel gives the daemon little to tell them apart.
        attempt.call.fail(error.code == .poweredOff ? .adapterNotPowered : adapter.profile.connectionAborted)
        heard()
    }

    /// Calls off what is under way.
    func endConnecting() {
        endAttempt()?.call.fail(adapter.profile.connectionCancelled)
    }

    /// The same, without an answer.
    func endAttempt() -> ConnectAttempt? {
        guard let attempt = pendingConnect else { return nil }
        pendingConnect = nil
        attempt.task?.cancel()
        return attempt
    }

    private func connected(_ link: any PeripheralConnection, _ attempt: ConnectAttempt) {
        pendingConnect = nil
        connection = link
        isConnected = true
        stopTemporaryTimer()
        if !adapter.profile.connectsSilently { signal(["Connected"]) }
        attempt.call.reply()
        Task { [weak self] in
            let reason = await link.disconnection()
            guard let self, self.connection === link else { return }
            self.connection = nil
            self.adapter.linkEnded(self, reason: reason)
        }
        Task { [weak self] in
            let found = try? await link.discoverServices()
            guard let self, self.connection === link, let found else { return }
            await self.resolved(found, link)
        }
    }

    private func resolved(_ found: [RemoteService], _ link: any PeripheralConnection) async {
        // Strong: the adapter may be pulled out meanwhile.
        let adapter = adapter
        defer { withExtendedLifetime(adapter) {} }
        let mtu = await link.attMTU ?? 23
        guard connection === link else { return }
        if adapter.profile.resolvesBeforeExporting {
            servicesResolved = true
            signal(["ServicesResolved"])
            // Long enough for a client to look, short enough for one that waits.
            _ = adapter.timers.after(.milliseconds(50)) { [weak self] in
                guard let self, self.connection === link else { return }
                self.exportServices(found, mtu: mtu)
            }
            return
        }
        exportServices(found, mtu: mtu)
        servicesResolved = true
        signal(["UUIDs", "ServicesResolved"])
    }

    private func exportServices(_ found: [RemoteService], mtu: Int) {
        remembersServices = true
        // The cached objects stay if they are the same; anything else would look like a change to the applications.
        if services.map(\.service) == found {
            for service in services { service.reconnected(mtu: mtu) }
            return
        }
        removeServices()
        for service in found {
            if let object = GattService1(service, device: self, mtu: mtu) {
                services.append(object)
                object.export()
            }
        }
    }

    func removeServices() {
        for service in services { service.remove() }
        services = []
    }

    /// A central that has no services: bluetoothd's look at it ends at once.
    func resolveWithoutServices() {
        guard connection == nil else { return }
        servicesResolved = true
        remembersServices = true
        signal(["ServicesResolved"])
    }

    // MARK: Disconnecting

    func disconnect(_ call: MethodCall, removes: Bool = false) {
        endConnecting()
        guard isConnected else {
            heard()
            return call.reply()
        }
        pendingDisconnects.append((call, removes))
        guard disconnectTimer == nil else { return }
        // DISCONNECT_TIMER: the profiles get two seconds to say goodbye.
        disconnectTimer = adapter.timers.after(Limits.disconnectDelay) { [weak self] in
            guard let self else { return }
            self.adapter.endLink(self)
        }
    }
}

extension Adapter {
    /// Takes a device's link down, whoever made it. The end itself is heard of from the radio.
    func endLink(_ device: Device1) {
        if let connection = device.connection { Task { await connection.disconnect() } }
        if let central = device.central { controller.disconnect(central) }
        if let leftover = device.leftover { controller.disconnect(leftover) }
    }

    /// A device's link is down: the signals and the answers to Disconnect, in bluetoothd's order.
    func linkEnded(_ device: Device1, reason: DisconnectReason) {
        device.disconnectTimer?.cancel()
        device.disconnectTimer = nil
        device.endConnecting()
        guard device.isConnected else { return }
        if let connection = device.connection { Task { await connection.disconnect() } }
        device.connection = nil
        device.leftover = nil
        device.isConnected = false
        device.servicesResolved = false
        for service in device.services { service.disconnected() }
        let waiting = device.pendingDisconnects
        device.pendingDisconnects = []
        if profile.answersDisconnectFirst { for pending in waiting { pending.call.reply() } }
        if profile.hasDisconnectedSignal {
            // The signal flushes what is pending, so that the two properties come apart.
            let (name, text) = Self.words(for: reason)
            device.signal(["ServicesResolved"])
            presence.emit(
                device.path, "org.bluez.Device1", "Disconnected", [.string("org.bluez.Reason." + name), .string(text)])
            device.signal(["Connected"])
        } else {
            device.signal(["ServicesResolved", "Connected"])
        }
        if !profile.answersDisconnectFirst { for pending in waiting { pending.call.reply() } }
        if waiting.contains(where: \.removes) { return remove(device) }
        if !profile.cachesServices || device.hasPrivateAddress { device.removeServices() }
        device.heard()
    }

    /// device_disconnected in src/device.c.
    private static func words(for reason: DisconnectReason) -> (String, String) {
        switch reason {
        case .local: ("Local", "Connection terminated by local host")
        case .remote: ("Remote", "Connection terminated by remote user")
        case .timeout: ("Timeout", "Connection timeout")
        case .adapterLost, .unknown: ("Unknown", "Unspecified")
        }
    }
}
