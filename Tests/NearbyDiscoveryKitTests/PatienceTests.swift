// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import NearbyDiscoveryKit

/// What `whenUnavailable` promises, at radios that contradict themselves.
@Suite(.timeLimit(.minutes(1))) struct PatienceTests {
    private static let off = BluetoothError(.poweredOff, "the Bluetooth adapter is off")
    private static let noService = BluetoothError(.serviceUnavailable, "the Bluetooth service is not running")

    @Test func aHostEndsWhenItsPatienceDoesThoughTheAdapterSaysItIsOn() async throws {
        let clock = ManualClock()
        let radio = ContradictoryRadio(clock, refusing: Self.off)
        let host = try NearbyHost(
            NearbyHost.Configuration(appId: "a", whenUnavailable: .fail(after: .seconds(3))),
            radio: radio
        )
        let began = clock.now
        let error = await #expect(throws: NearbyError.self) { try await clock.run { try await host.run() } }
        #expect(error?.code == .poweredOff)
        #expect(clock.now - began <= .seconds(4))
        #expect(radio.count > 1)
    }

    /// A rule of the system's may change, as when the user joins the group.
    @Test func aHostThatWaitsWaitsForPermissionToo() async throws {
        let clock = ManualClock()
        let radio = ContradictoryRadio(
            clock, refusing: BluetoothError(.unauthorized, "this user may not use Bluetooth"))
        let host = try NearbyHost(NearbyHost.Configuration(appId: "a", whenUnavailable: .wait), radio: radio)
        let events = host.events()
        let error = await #expect(throws: NearbyError.self) {
            try await clock.run {
                let running = Task { try await host.run() }
                var refusals = 0
                for await event in events {
                    if case .unavailable = event { refusals += 1 }
                    if refusals == 3 { running.cancel() }
                }
                try await running.value
            }
        }
        #expect(error?.code == .cancelled)
    }

    /// Nobody has been met yet whose link could fail.
    @Test(arguments: [BluetoothError.Code.limitExceeded, .busy, .attributeNotFound, .connectionFailed])
    func aRadioThatCannotServeIsNoFailedLink(code: BluetoothError.Code) async throws {
        let clock = ManualClock()
        let radio = ContradictoryRadio(clock, refusing: BluetoothError(code, "this radio has 8 sessions already"))
        let host = try NearbyHost(NearbyHost.Configuration(appId: "a"), radio: radio)
        let error = await #expect(throws: NearbyError.self) { try await clock.run { try await host.run() } }
        #expect(error?.code == .serviceUnavailable)
        #expect(error?.cause?.code == code)
    }

    @Test func aClientDoesNotAskAContradictoryRadioWithoutAPause() async throws {
        let clock = ManualClock()
        let radio = ContradictoryRadio(clock, refusing: Self.off)
        let client = try NearbyClient(
            NearbyClient.Configuration(appId: "a", timeout: .seconds(10), whenUnavailable: .wait),
            radio: radio
        )
        let error = await #expect(throws: NearbyError.self) { try await clock.run { try await client.join() } }
        #expect(error?.code == .poweredOff)
        #expect((2...60).contains(radio.count))
    }

    /// The facade's scan has no other time limit.
    @Test func aClientWhosePatienceEndedDuringTheAttemptEndsWithIt() async throws {
        let clock = ManualClock()
        let radio = ContradictoryRadio(clock, refusing: Self.noService, after: .seconds(5))
        let client = try NearbyClient(
            NearbyClient.Configuration(appId: "a", timeout: nil, whenUnavailable: .fail(after: .seconds(3))),
            radio: radio
        )
        let error = await #expect(throws: NearbyError.self) { try await clock.run { try await client.join() } }
        #expect(error?.code == .serviceUnavailable)
        #expect(radio.count == 1)
    }

    @Test func aScanThatNeverStartsIsNotAnEmptyRoom() async throws {
        let clock = ManualClock()
        let radio = ContradictoryRadio(clock, refusing: Self.noService, after: .seconds(60))
        let client = try NearbyClient(NearbyClient.Configuration(appId: "a", timeout: .seconds(10)), radio: radio)
        let error = await #expect(throws: NearbyError.self) { try await clock.run { try await client.join() } }
        #expect(error?.code == .serviceUnavailable)
        #expect(error?.cause?.advice != nil)
    }

    @Test func aServiceThatDoesNotAnswerIsNoServiceAndNotAFailedLink() {
        #expect(NearbyError(BluetoothError(.timedOut, "no answer")).code == .serviceUnavailable)
    }

    /// The standard library ends the process where a deadline is out of a clock's range.
    @Test(arguments: [.seconds(Int64.max), Duration(attoseconds: .max), Duration(attoseconds: .min), .zero])
    func anyDurationIsADuration(duration: Duration) async throws {
        let medium = SimulatedMedium(clock: ContinuousClock())
        let radio = medium.addAdapter()
        let selection: HostSelection = duration > .zero ? .strongest(within: duration) : .first
        let client = try NearbyClient(
            NearbyClient.Configuration(
                appId: "a",
                selection: selection,
                timeout: duration > .zero ? duration : nil,
                whenUnavailable: .fail(after: duration)
            ),
            radio: radio
        )
        let events = client.events()
        let join = Task { try await client.join() }
        for await event in events where event == .scanning { join.cancel() }
        let ended = await #expect(throws: NearbyError.self) { try await join.value }
        #expect(ended?.code == .cancelled)
        radio.setPowered(false)
        let host = try NearbyHost(
            NearbyHost.Configuration(appId: "a", whenUnavailable: .fail(after: duration)),
            radio: radio
        )
        let unavailable = host.events()
        let run = Task { try await host.run() }
        for await _ in unavailable { run.cancel() }
        await #expect(throws: NearbyError.self) { try await run.value }
    }
}
