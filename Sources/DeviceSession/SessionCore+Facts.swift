// SPDX-License-Identifier: MIT

import BluetoothLE

extension SessionCore {
    /// Reads what the device says about itself, and opens the gate whatever came of it.
    func readFacts(_ connection: any PeripheralConnection, _ services: [RemoteService], run: Int) async {
        _ = await collectFacts(connection, services, run: run)
        guard run == self.run else { return }
        board.isDeviceInfoReady = true
        settleGates()
        let battery = DeviceFacts.places(in: services).first { place in
            place.uuid == DeviceFacts.battery && !place.properties.isDisjoint(with: [.notify, .indicate])
        }
        guard let battery else { return }
        do throws(BluetoothError) {
            let subscription = try await connection.subscribe(to: battery)
            for await value in subscription.values {
                guard run == self.run else { return }
                take([(battery.uuid, .success(value))])
            }
        } catch {
            log(.info, "the battery level does not notify: \(error)")
        }
    }

    /// - Returns: what ended it early.
    private func collectFacts(
        _ connection: any PeripheralConnection,
        _ services: [RemoteService],
        run: Int
    ) async -> DeviceSessionError? {
        for place in DeviceFacts.places(in: services) where place.properties.contains(.read) {
            let result: Result<[UInt8], BluetoothError>
            do throws(BluetoothError) {
                result = .success(try await connection.read(place))
            } catch {
                result = .failure(error)
            }
            guard run == self.run else { return phaseError }
            if case .failure(let error) = result, error.code != .attributeError, error.code != .notSupported {
                return DeviceSessionError(radio: error, otherwise: .readFailed)
            }
            take([(place.uuid, result)])
        }
        return nil
    }

    private func take(_ values: [(BluetoothUUID, Result<[UInt8], BluetoothError>)]) {
        var facts = board.facts
        for (uuid, result) in values {
            switch result {
            case .success(let value): facts.take(value, of: uuid)
            case .failure(let error): facts.unreadable[uuid] = error
            }
        }
        guard facts != board.facts else { return }
        board.facts = facts
        factStreams.send(facts)
    }

    /// Reads the facts anew. May be called while another call does the same, or while a command is under way.
    func refreshFacts() async throws(DeviceSessionError) -> DeviceFacts {
        guard case .connected(let link) = phase else {
            if case .tornDown = phase { throw .tornDown }
            throw .notConnected
        }
        let run = run
        var services = board.services
        if services.isEmpty {
            do throws(BluetoothError) {
                services = try await link.connection.discoverServices(awaiting: nil)
            } catch {
                throw DeviceSessionError(radio: error, otherwise: .readFailed)
            }
        }
        if let error = await collectFacts(link.connection, services, run: run) { throw error }
        board.isDeviceInfoReady = true
        settleGates()
        return board.facts
    }

    /// Reads one characteristic, for an app that wants more than the facts.
    func read(_ characteristic: RemoteCharacteristic) async throws(DeviceSessionError) -> [UInt8] {
        guard case .connected(let link) = phase else {
            if case .tornDown = phase { throw .tornDown }
            throw .notConnected
        }
        do throws(BluetoothError) {
            return try await link.connection.read(characteristic)
        } catch {
            throw DeviceSessionError(radio: error, otherwise: .readFailed)
        }
    }
}
