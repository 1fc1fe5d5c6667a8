// SPDX-License-Identifier: MIT

import BluetoothLE

extension SessionCore {
    /// Finds the profile's characteristics, subscribes, and reads the device's facts.
    func setUp(_ connection: any PeripheralConnection, run: Int) async {
        let services: [RemoteService]
        do throws(BluetoothError) {
            services = try await discover(connection)
        } catch {
            return await failedToDiscover(DeviceSessionError(radio: error, otherwise: .connectionFailed), run: run)
        }
        guard run == self.run, case .connected(var link) = phase else { return }
        board.services = services
        if configuration.readsDeviceInfo {
            link.tasks.append(Task { [weak self] in await self?.readFacts(connection, services, run: run) })
            phase = .connected(link)
        }
        guard let found = profile.channels.lazy.compactMap({ $0.find(in: services) }).first else {
            return failChannel(
                DeviceSessionError(
                    .channelMissing,
                    "the device has no \(profile.name) characteristics",
                    advice: "Name the right profile, or characteristics of your own."
                )
            )
        }
        let subscription: Subscription
        do throws(BluetoothError) {
            subscription = try await connection.subscribe(to: found.incoming)
        } catch {
            let error = DeviceSessionError(radio: error, otherwise: .channelFailed)
            // A lost link says so itself, and may be followed by another one.
            guard run == self.run, error.code != .disconnected else { return }
            if isTemporary(error) { return linkDown(.adapterLost, run: run) }
            return failChannel(error)
        }
        guard run == self.run, case .connected(var link) = phase else { return }
        link.writer = PacketWriter(connection, found.outgoing, profile, radio.clock)
        link.tasks.append(
            Task { [weak self] in
                for await value in subscription.values { await self?.received(value, run: run) }
            }
        )
        phase = .connected(link)
        board.isCommandReady = true
        log(.info, "ready: writes to \(found.outgoing.uuid), listens to \(found.incoming.uuid)")
        perform(channel.open(at: now))
        settleGates()
        rearm()
    }

    /// A radio can say that all is found before it is (bluez/bluez#1489): what the profile needs gets a second chance.
    private nonisolated func discover(
        _ connection: any PeripheralConnection
    ) async throws(BluetoothError) -> [RemoteService] {
        let awaited = profile.channels.first?.incoming.characteristic
        guard profile.channels.count > 1 else { return try await connection.discoverServices(awaiting: awaited) }
        let services = try await connection.discoverServices(awaiting: nil)
        if profile.channels.contains(where: { $0.find(in: services) != nil }) { return services }
        return try await connection.discoverServices(awaiting: awaited)
    }

    /// A link over which nothing can be found is of no use.
    private func failedToDiscover(_ error: DeviceSessionError, run: Int) async {
        guard run == self.run, case .connected(let link) = phase else { return }
        // The link's own end says more about why.
        if error.code == .disconnected { return }
        if isTemporary(error) { return linkDown(.adapterLost, run: run) }
        self.run += 1
        perform(channel.close(error))
        failGates(error)
        enter(.disconnecting, board.state)
        let closing = Task { await link.connection.disconnect() }
        self.closing = closing
        await closing.value
        if case .disconnecting = phase {
            perform(channel.close(.notConnected))
            enter(.failed, .failed(error))
        }
    }

    /// Whether it is the adapter that is away, and the session waits for it. The link goes with it: a radio may end what
    /// is under way first, and tell of the link's end later.
    private func isTemporary(_ error: DeviceSessionError) -> Bool {
        error.code == .radioUnavailable && configuration.reconnection.attempts > 0
    }

    private func failChannel(_ error: DeviceSessionError) {
        channelFailure = error
        if error.code != .channelMissing || !profile.channels.isEmpty { log(.warning, "\(error)") }
        perform(channel.close(error))
        settleGates()
    }

    // MARK: Out

    func write(_ entry: CommandChannel.Entry) {
        guard case .connected(let link) = phase, let writer = link.writer else { return }
        if entry.isLogged { log(.debug, "> \(entry.echo ?? LogText.hex(entry.bytes))") }
        let run = run
        let codec = codec
        // Never cancelled with its caller: half a message would be taken for the beginning of the next one.
        Task { [weak self] in
            let error = await writer.send(entry.bytes, codec)
            await self?.wrote(entry, error, run: run)
        }
    }

    private func wrote(_ entry: CommandChannel.Entry, _ error: DeviceSessionError?, run: Int) {
        hub.send(.sendFinished(SendReport(id: SendID(rawValue: entry.id), bytes: entry.bytes.count, error: error)))
        guard run == self.run else { return }
        if let error { log(.warning, "a message could not be sent: \(error)") }
        perform(channel.wrote(entry.id, error, at: now))
        rearm()
    }

    // MARK: In

    private func received(_ packet: [UInt8], run: Int) {
        guard run == self.run else { return }
        let now = now
        hub.send(.raw(packet))
        guard let bytes = codec.decode(packet) else {
            log(.warning, "\(packet.count) bytes are not in the codec \(codec.name)")
            return
        }
        if let tokens = lines?.take(bytes, at: now) {
            for token in tokens { perform(channel.received(token, at: now)) }
        } else if let tokens = frames?.take(bytes, at: now) {
            for token in tokens {
                switch token {
                case .frame(let payload): tell(payload, at: now)
                case .broken(let raw):
                    log(.warning, "a frame of \(raw.count) bytes is broken")
                    hub.send(.crcError(raw))
                }
            }
        } else {
            tell(bytes, at: now)
        }
        rearm()
    }

    private func tell(_ payload: [UInt8], at now: ContinuousClock.Instant) {
        log(.debug, "< \(payload.count) bytes")
        hub.send(.payload(payload, PayloadMeta(rssi: board.device?.rssi, time: now)))
    }

    func use(_ codec: any PacketCodec) throws(DeviceSessionError) {
        if case .tornDown = phase { throw .tornDown }
        guard (0...256).contains(codec.overhead) else {
            throw DeviceSessionError(.invalidArgument, "a codec's overhead is 0 to 256 bytes, not \(codec.overhead)")
        }
        self.codec = codec
        board.codecName = codec.name
        // What was half a line in the other code is noise in this one.
        lines?.reset()
        frames?.reset()
        rearm()
    }
}
