// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import NearbyDiscoveryKit

/// A host that is served and not advertised: nobody finds it.
@Suite(.timeLimit(.minutes(1))) struct UnheardHostTests {
    /// A radio that serves, and tells what it is given to tell.
    private final class TellingRadio: Radio, PeripheralSession {
        let clock: any MonotonicClock
        let notificationScope = NotificationScope.allSubscribers
        let events: AsyncStream<PeripheralEvent>
        private let telling: AsyncStream<PeripheralEvent>.Continuation

        init(_ clock: ManualClock) {
            self.clock = clock
            (events, telling) = AsyncStream.makeStream(of: PeripheralEvent.self)
        }

        func tell(_ event: PeripheralEvent) { telling.yield(event) }

        func adapterStatuses() -> AsyncStream<AdapterStatus> {
            let (stream, statuses) = AsyncStream.makeStream(of: AdapterStatus.self)
            statuses.yield(AdapterStatus(.poweredOn, adapter: "hci0"))
            return stream
        }

        func serve(
            _ services: [LocalService],
            advertising advertisement: AdvertisementRequest?
        ) async throws(BluetoothError) -> any PeripheralSession { self }

        func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan { throw .cancelled }

        func connect(
            to peer: PeerIdentifier,
            timeout: Duration
        ) async throws(BluetoothError) -> any PeripheralConnection { throw .cancelled }

        func respond(to request: BluetoothLE.RequestID, with response: RequestResponse) async {}

        func notify(
            _ value: [UInt8],
            on characteristic: LocalCharacteristicID,
            to central: PeerIdentifier?
        ) async throws(BluetoothError) {}

        func disconnect(_ central: PeerIdentifier) async {}

        func stop() async { telling.finish() }
    }

    private static let noRoom = BluetoothError(
        .advertisingFailed, "the adapter has no room for another advertisement")
    private static let slower = BluetoothError(.advertisingFailed, "the adapter advertises at its own interval")

    @Test func aHostWithoutAnAdvertisementIsUnavailableUntilItHasOne() async throws {
        let clock = ManualClock()
        let radio = TellingRadio(clock)
        let host = try NearbyHost(NearbyHost.Configuration(appId: "a", sessionId: "s"), radio: radio)
        let events = host.events()
        for event in [
            PeripheralEvent.serving(advertising: true, degraded: nil), .interrupted(.cancelled),
            .serving(advertising: false, degraded: Self.noRoom), .serving(advertising: true, degraded: Self.slower),
        ] { radio.tell(event) }
        let told = try await clock.run {
            let running = Task { try await host.run() }
            var told: [HostEvent] = []
            for await event in events {
                told.append(event)
                if told.count == 4 { running.cancel() }
            }
            _ = await running.result
            return told
        }
        #expect(
            told.prefix(4) == [
                .serving(sessionId: "s", degraded: nil), .unavailable(.cancelled), .unavailable(Self.noRoom),
                .serving(sessionId: "s", degraded: Self.slower),
            ])
    }
}
