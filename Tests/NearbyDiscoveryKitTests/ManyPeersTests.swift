// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import NearbyDiscoveryKit

/// Phones change their addresses: a client that searches for days meets any number of peers.
@Suite(.timeLimit(.minutes(1))) struct ManyPeersTests {
    @Test func linksThatGoDownByThemselvesAreLetGoOf() async throws {
        let clock = ManualClock()
        let radio = FleetingRadio(clock)
        let client = try NearbyClient(NearbyClient.Configuration(appId: "a", timeout: nil), radio: radio)
        let error = await #expect(throws: NearbyError.self) {
            try await clock.run {
                let joining = Task { try await client.join() }
                await radio.connected(times: 200)
                // Some may be on their way out.
                #expect(radio.linksAlive <= 100)
                joining.cancel()
                _ = try await joining.value
            }
        }
        #expect(error?.code == .cancelled)
    }

    @Test func thePeersOfEndedLinksAreForgotten() async {
        let radio = FleetingRadio(ManualClock())
        var links = LinkTable(radio: radio, awaiting: ServiceUUIDs.message) { _, _ in }
        for number in UInt64(1)...50 {
            links.connect(AttemptID(number), to: PeerIdentifier("peer \(number)"), timeout: .seconds(1))
            links.close(AttemptID(number))
        }
        await links.closeAll().value
        links.connect(AttemptID(51), to: PeerIdentifier("peer 51"), timeout: .seconds(1))
        links.close(AttemptID(51))
        #expect(links.closingCount == 1)
        await links.closeAll().value
    }
}

/// A radio that hears a device that it has not heard before in each scan; every link is down as soon as it is up.
private final class FleetingRadio: Central {
    private struct State {
        var scans = 0
        var links = 0
        var alive = 0
        var waiting: (times: Int, CheckedContinuation<Void, Never>)?
    }

    let clock: any MonotonicClock
    private let state = Locked(State())

    init(_ clock: ManualClock) { self.clock = clock }

    var linksAlive: Int { state.withLock { $0.alive } }

    /// Waits until there have been so many links.
    func connected(times: Int) async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiting = (times, continuation) }
        }
    }

    func adapterStatuses() -> AsyncStream<AdapterStatus> {
        let (stream, statuses) = AsyncStream.makeStream(of: AdapterStatus.self)
        statuses.yield(AdapterStatus(.poweredOn, adapter: "hci0"))
        return stream
    }

    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan {
        let number = state.withLock { state in
            state.scans += 1
            return state.scans
        }
        let (stream, events) = AsyncStream.makeStream(of: ScanEvent.self)
        let advertisement = Advertisement(serviceUUIDs: [ServiceUUIDs.service])
        let peer = PeerIdentifier("peer \(number)")
        events.yield(.discovered(Discovery(peer: peer, advertisement: advertisement, rssi: -50, time: clock.now)))
        return Scan(events: stream) { events.finish() }
    }

    func connect(
        to peer: PeerIdentifier, timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        let woken = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.links += 1
            state.alive += 1
            guard let waiting = state.waiting, waiting.times == state.links else { return nil }
            return waiting.1
        }
        woken?.resume()
        return FleetingConnection(peer) { [state] in state.withLock { $0.alive -= 1 } }
    }
}

private final class FleetingConnection: PeripheralConnection {
    let peer: PeerIdentifier
    private let onEnd: @Sendable () -> Void
    private static let down = BluetoothError(.disconnected, "the link went down")

    init(_ peer: PeerIdentifier, _ onEnd: @escaping @Sendable () -> Void) {
        self.peer = peer
        self.onEnd = onEnd
    }

    deinit { onEnd() }

    var attMTU: Int? { nil }

    /// The word that the link is down comes first.
    func discoverServices(awaiting awaited: BluetoothUUID?) async throws(BluetoothError) -> [RemoteService] {
        let (never, end) = AsyncStream.makeStream(of: Void.self)
        for await _ in never {}
        end.finish()
        throw .cancelled
    }

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] { throw Self.down }

    func write(
        _ value: [UInt8], to characteristic: RemoteCharacteristic, type: WriteType
    ) async throws(BluetoothError) {
        throw Self.down
    }

    func subscribe(to characteristic: RemoteCharacteristic) async throws(BluetoothError) -> Subscription {
        throw Self.down
    }

    func disconnect() async {}

    func disconnection() async -> DisconnectReason { .remote }
}
