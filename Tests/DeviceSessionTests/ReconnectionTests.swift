// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@testable import DeviceSession

/// What a session does about a link that was lost.
@Suite(.timeLimit(.minutes(2))) struct ReconnectionTests {
    private let bench = Bench()

    private static func again(_ policy: ReconnectionPolicy) -> DeviceSession.Configuration {
        DeviceSession.Configuration(reconnection: policy)
    }

    @Test func aLostLinkComesBackWithTheSessionsStateKept() async throws {
        let clock = bench.clock
        let log = EventLog()
        var configuration = DeviceSession.Configuration()
        configuration.reconnection = .attempts(3, initialPause: .seconds(1), factor: 2)
        try await bench.withSession(Bench.at, configuration) { [bench] (session, device) async throws in
            session.onEvent = { log.add($0) }
            try await session.waitUntil(.deviceInfoReady, timeout: .seconds(9))
            let pending = Task { try await session.run("AT+SILENT", timeout: .seconds(60)) }
            await device.pause(.milliseconds(10))
            bench.gadget.inject(.nextConnect(fails: BluetoothError(.connectionFailed, "no")))
            let began = clock.now
            bench.medium.drop(between: bench.phone, and: bench.gadget)
            #expect(await failure { try await pending.value }?.code == .disconnected)
            #expect(session.facts.firmwareRevision == "1.2.3")
            try await session.waitUntil(.commandReady, timeout: .seconds(60))
            #expect(began.duration(to: clock.now) >= .seconds(3))
            #expect(try await session.run("AT+VERSION") == ["1.2.3"])
            #expect(log.states == [.connecting, .connected])
        }
    }

    @Test func aDeviceThatIsForgottenIsSearchedFor() async throws {
        var configuration = DeviceSession.Configuration()
        configuration.reconnection = .attempts(1, initialPause: .seconds(2))
        try await bench.withSession(Bench.at, configuration) { [bench] (session, _) async throws in
            bench.phone.forget(bench.gadget.peerIdentifier)
            try await bench.clock.sleep(for: .milliseconds(10))
            #expect(session.state == .connecting)
            try await session.waitUntil(.commandReady, timeout: .seconds(60))
            #expect(try await session.run("AT") == [])
        }
    }

    @Test func whenAllAttemptsHaveFailedTheSessionHas() async throws {
        var configuration = DeviceSession.Configuration()
        configuration.reconnection = .attempts(2, initialPause: .seconds(1))
        try await bench.withSession(Bench.at, configuration) { [bench] (session, device) async throws in
            await device.stop()
            let gate = Task { try await session.waitUntil(.commandReady, timeout: .seconds(200)) }
            try await gate.value
            bench.medium.setInRange(false, between: bench.phone, and: bench.gadget)
            while session.state == .connected { try await bench.clock.sleep(for: .seconds(1)) }
            let error = await failure { try await session.waitUntil(.commandReady, timeout: .seconds(200)) }
            #expect(error.map { session.state == .failed($0) } == true)
            let later = await failure { try await session.run("AT") }
            #expect(later == error)
        }
    }

    @Test func disconnectEndsTheAttempts() async throws {
        var configuration = DeviceSession.Configuration()
        configuration.reconnection = .attempts(9, initialPause: .seconds(100))
        try await bench.withSession(Bench.at, configuration) { [bench] (session, _) async throws in
            bench.medium.drop(between: bench.phone, and: bench.gadget)
            try await bench.clock.sleep(for: .seconds(1))
            #expect(session.state == .connecting)
            await session.disconnect()
            #expect(session.state == .idle)
        }
    }

    // MARK: The adapter's power

    /// How an adapter can be away.
    enum Absence: CaseIterable {
        case off, unplugged, serviceDown

        var code: BluetoothError.Code {
            switch self {
            case .off: .poweredOff
            case .unplugged: .adapterNotFound
            case .serviceDown: .resetting
            }
        }

        func begins(_ isAway: Bool, on radio: SimulatedRadio) {
            switch self {
            case .off: radio.setPowered(!isAway)
            case .unplugged: isAway ? radio.unplug() : radio.plug()
            case .serviceDown: isAway ? radio.stopService() : radio.startService()
            }
        }
    }

    @Test(arguments: Absence.allCases)
    func whileTheAdapterIsAwayNoAttemptIsMade(absence: Absence) async throws {
        let log = EventLog()
        try await bench.withSession(Bench.at, Self.again(.attempts(1))) { [bench] (session, _) async throws in
            session.onEvent = { log.add($0) }
            absence.begins(true, on: bench.phone)
            // Twenty minutes: one attempt would have failed long ago.
            try await bench.clock.sleep(for: .seconds(1_200))
            #expect(session.state == .connecting)
            #expect(session.connectInterruption?.code == absence.code)
            absence.begins(false, on: bench.phone)
            try await session.waitUntil(.commandReady, timeout: .seconds(60))
            #expect(session.connectInterruption == nil)
            #expect(try await session.run("AT") == [])
            #expect(log.states == [.connecting, .connected])
        }
    }

    /// bluetoothd's links end what is under way with the adapter's error, and are told as lost a moment later: in the
    /// discovery, after 500 ms, and in the subscription.
    @Test(arguments: Absence.allCases, [500, 1_500])
    func anAdapterThatGoesBeforeTheChannelIsReadyIsWaitedFor(absence: Absence, milliseconds: Int) async throws {
        let bench = Bench(conditions: Conditions(latency: .milliseconds(500), discoveryTime: .seconds(1)))
        try await bench.clock.run { () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            let radio = TroubledRadio(bench.phone, .loss(absence.code))
            let session = try DeviceSession(
                profile: Bench.at, radio: radio, configuration: Self.again(.attempts(1)))
            try await bench.find(session)
            try await session.connect(id: bench.gadget.peerIdentifier)
            let gate = Task { try await session.waitUntil(.commandReady, timeout: .seconds(1_800)) }
            try await bench.clock.sleep(for: .milliseconds(milliseconds))
            absence.begins(true, on: bench.phone)
            try await bench.clock.sleep(for: .seconds(1_200))
            #expect(session.state == .connecting)
            #expect(session.connectInterruption?.code == absence.code)
            absence.begins(false, on: bench.phone)
            let result = await gate.result
            #expect(throws: Never.self) { try result.get() }
            await session.teardown()
            #expect(bench.medium.links.isEmpty)
            await device.stop()
        }
    }

    @Test(arguments: ["disconnect", "teardown"])
    func waitingForPowerCanBeEnded(end: String) async throws {
        try await bench.withSession(Bench.at, Self.again(.attempts(1))) { [bench] (session, _) async throws in
            let gate = Task {
                try await bench.clock.sleep(for: .seconds(1))
                try await session.waitUntil(.commandReady, timeout: .seconds(1_800))
            }
            bench.phone.setPowered(false)
            try await bench.clock.sleep(for: .seconds(60))
            #expect(session.connectInterruption != nil)
            if end == "disconnect" { await session.disconnect() } else { await session.teardown() }
            #expect(session.connectInterruption == nil)
            #expect(session.state == (end == "disconnect" ? .idle : .failed(.tornDown)))
            let codes: [DeviceSessionError.Code] = [.disconnected, .tornDown]
            #expect(await failure { try await gate.value }.map { codes.contains($0.code) } == true)
            bench.phone.setPowered(true)
            try await bench.clock.sleep(for: .seconds(60))
            #expect(bench.medium.links.isEmpty)
        }
    }

    /// The only attempt there is, ended three times by the adapter, and by nothing else.
    @Test func anAttemptThatTheAdapterHasEndedDoesNotCount() async throws {
        let bench = Bench(conditions: Conditions(connectionTime: .seconds(5)))
        let policy = ReconnectionPolicy.attempts(1, initialPause: .seconds(1))
        try await bench.withSession(Bench.at, Self.again(policy)) { (session, _) async throws in
            bench.medium.drop(between: bench.phone, and: bench.gadget)
            for _ in 1...3 {
                try await bench.clock.sleep(for: .seconds(3))
                bench.phone.setPowered(false)
                try await bench.clock.sleep(for: .seconds(60))
                #expect(session.state == .connecting)
                bench.phone.setPowered(true)
            }
            try await session.waitUntil(.commandReady, timeout: .seconds(60))
        }
    }

    /// Off and on again between two looks: seen by the attempt's own error only.
    @Test func aBlinkOfTheAdapterDoesNotCountEither() async throws {
        let bench = Bench(conditions: Conditions(connectionTime: .seconds(5)))
        let policy = ReconnectionPolicy.attempts(1, initialPause: .seconds(1))
        try await bench.withSession(Bench.at, Self.again(policy)) { (session, _) async throws in
            bench.medium.drop(between: bench.phone, and: bench.gadget)
            try await bench.clock.sleep(for: .seconds(3))
            bench.phone.setPowered(false)
            bench.phone.setPowered(true)
            try await session.waitUntil(.commandReady, timeout: .seconds(60))
        }
    }

    /// An adapter that is on, and whose every attempt says that it is not, is not tried for ever.
    @Test func aRadioThatContradictsItselfIsGivenUp() async throws {
        let policy = ReconnectionPolicy.attempts(3, initialPause: .seconds(1), factor: 1)
        try await bench.withSession(Bench.at, Self.again(policy)) { [bench] (session, _) async throws in
            let off = BluetoothError(.poweredOff, "off", advice: "On.")
            for _ in 1...20 { bench.gadget.inject(.nextConnect(fails: off)) }
            let began = bench.clock.now
            bench.medium.drop(between: bench.phone, and: bench.gadget)
            while session.state == .connected { try await bench.clock.sleep(for: .milliseconds(1)) }
            let error = await failure { try await session.waitUntil(.connected, timeout: .seconds(600)) }
            #expect(error?.code == .radioUnavailable && error?.cause == off)
            #expect(error.map { session.state == .failed($0) } == true)
            #expect(began.duration(to: bench.clock.now) < .seconds(7))
        }
    }

    /// A session whose radio says nothing of its adapter but what it is told to say.
    private func withTellingRadio(
        _ body: @escaping @Sendable (DeviceSession, TellingRadio) async throws -> Void
    ) async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            let radio = TellingRadio(bench.phone)
            let policy = ReconnectionPolicy.attempts(2, initialPause: .seconds(1), factor: 1)
            let session = try DeviceSession(profile: Bench.at, radio: radio, configuration: Self.again(policy))
            try await bench.connect(session)
            try await body(session, radio)
            await session.teardown()
            await device.stop()
        }
    }

    @Test func anAdapterWhoseStateStaysUnknownIsTriedAllTheSame() async throws {
        try await withTellingRadio { [bench] (session, _) async throws in
            let began = bench.clock.now
            bench.medium.drop(between: bench.phone, and: bench.gadget)
            while session.state == .connected { try await bench.clock.sleep(for: .milliseconds(1)) }
            try await session.waitUntil(.commandReady, timeout: .seconds(60))
            #expect(began.duration(to: bench.clock.now) >= Limits.unknownAdapter)
        }
    }

    @Test func attemptsWithAnAdapterThatStaysUnknownComeToAnEnd() async throws {
        try await withTellingRadio { [bench] (session, _) async throws in
            bench.medium.setInRange(false, between: bench.phone, and: bench.gadget)
            while session.state == .connected { try await bench.clock.sleep(for: .milliseconds(1)) }
            let error = await failure { try await session.waitUntil(.connected, timeout: .seconds(600)) }
            #expect(error.map { session.state == .failed($0) } == true)
        }
    }

    @Test func anAdapterThatIsKnownToBeOffInTimeIsNotTried() async throws {
        try await withTellingRadio { [bench] (session, radio) async throws in
            bench.medium.drop(between: bench.phone, and: bench.gadget)
            try await bench.clock.sleep(for: .seconds(6))
            radio.tell(AdapterStatus(.poweredOff))
            try await bench.clock.sleep(for: .seconds(600))
            #expect(session.state == .connecting)
            #expect(session.connectInterruption?.code == .poweredOff)
            radio.tell(AdapterStatus(.poweredOn))
            try await session.waitUntil(.commandReady, timeout: .seconds(60))
        }
    }
}

/// A radio that does not know its adapter's state until it is told.
private final class TellingRadio: Central {
    private let radio: SimulatedRadio
    private let statuses = Broadcast<AdapterStatus>(keeping: 8, readers: 8)
    private let last = Locked(AdapterStatus(.unknown))

    var clock: any MonotonicClock { radio.clock }

    init(_ radio: SimulatedRadio) { self.radio = radio }

    func tell(_ status: AdapterStatus) {
        last.withLock { $0 = status }
        statuses.send(status)
    }

    func adapterStatuses() -> AsyncStream<AdapterStatus> { statuses.stream(startingWith: last.withLock { $0 }) }

    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan { try await radio.scan(for: filter) }

    func connect(
        to peer: PeerIdentifier,
        timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        try await radio.connect(to: peer, timeout: timeout)
    }
}
