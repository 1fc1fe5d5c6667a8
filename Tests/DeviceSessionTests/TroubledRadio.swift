// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio

/// A radio whose links fail as BlueZ's do, and the simulated ones do not.
final class TroubledRadio: Central {
    enum Trouble: Sendable {
        /// Every discovery fails so.
        case discovery(BluetoothError)
        /// What is under way when a link is lost ends with this code, a moment before the link is told as lost.
        case loss(BluetoothError.Code)
    }

    private let radio: SimulatedRadio
    private let trouble: Trouble

    var clock: any MonotonicClock { radio.clock }

    init(_ radio: SimulatedRadio, _ trouble: Trouble) {
        self.radio = radio
        self.trouble = trouble
    }

    func adapterStatuses() -> AsyncStream<AdapterStatus> { radio.adapterStatuses() }

    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan { try await radio.scan(for: filter) }

    func connect(
        to peer: PeerIdentifier,
        timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        TroubledConnection(try await radio.connect(to: peer, timeout: timeout), trouble, radio.clock)
    }
}

private final class TroubledConnection: PeripheralConnection {
    private let link: any PeripheralConnection
    private let trouble: TroubledRadio.Trouble
    private let clock: any MonotonicClock

    var peer: PeerIdentifier { link.peer }
    var attMTU: Int? { get async { await link.attMTU } }

    init(_ link: any PeripheralConnection, _ trouble: TroubledRadio.Trouble, _ clock: any MonotonicClock) {
        self.link = link
        self.trouble = trouble
        self.clock = clock
    }

    private func told(_ error: BluetoothError) -> BluetoothError {
        guard case .loss(let code) = trouble else { return error }
        return BluetoothError(code, "the adapter went away")
    }

    func discoverServices(awaiting awaited: BluetoothUUID?) async throws(BluetoothError) -> [RemoteService] {
        if case .discovery(let error) = trouble { throw error }
        do throws(BluetoothError) {
            return try await link.discoverServices(awaiting: awaited)
        } catch {
            throw told(error)
        }
    }

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        try await link.read(characteristic)
    }

    func write(
        _ value: [UInt8],
        to characteristic: RemoteCharacteristic,
        type: WriteType
    ) async throws(BluetoothError) {
        try await link.write(value, to: characteristic, type: type)
    }

    func subscribe(to characteristic: RemoteCharacteristic) async throws(BluetoothError) -> Subscription {
        do throws(BluetoothError) {
            return try await link.subscribe(to: characteristic)
        } catch {
            throw told(error)
        }
    }

    func disconnect() async { await link.disconnect() }

    func disconnection() async -> DisconnectReason {
        let reason = await link.disconnection()
        if case .loss = trouble { await clock.sleepQuietly(.milliseconds(1)) }
        return reason
    }
}
