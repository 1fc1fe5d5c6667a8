// SPDX-License-Identifier: MIT

import BluetoothLE
import Observation
import SimulatedRadio
import Testing

@testable import DeviceSession

/// From scan to teardown, with everything that may come in between.
@Suite(.timeLimit(.minutes(2))) struct LifeTests {
    private let bench = Bench()

    @Test func theStatesComeInTheirOrder() async throws {
        let log = EventLog()
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            let session = try bench.session()
            session.onEvent = { log.add($0) }
            #expect(session.state == .idle)
            try await bench.connect(session)
            #expect(session.device?.name == "Meter")
            #expect(session.services.count == 3)
            await session.disconnect()
            #expect(session.state == .idle && !session.isCommandReady)
            #expect(bench.medium.links.isEmpty)
            try await session.startScan()
            await session.stopScan()
            await session.teardown()
            await device.stop()
        }
        #expect(
            log.states == [
                .scanning, .connecting, .connected, .idle, .scanning, .idle, .failed(.tornDown),
            ])
    }

    @Test func aScanShowsAndForgets() async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            let session = try bench.session()
            try await session.startScan(ScanRules(namePrefix: "Met", minimumRSSI: -60, staleAfter: .seconds(3)))
            var seen: [Int] = []
            for await results in session.scanResultUpdates() {
                if seen.last != results.count { seen.append(results.count) }
                if results.count == 1, seen.count == 2 {
                    bench.medium.setRSSI(-80, between: bench.phone, and: bench.gadget)
                }
                if seen == [0, 1, 0] { break }
            }
            bench.medium.setRSSI(-40, between: bench.phone, and: bench.gadget)
            for await results in session.scanResultUpdates() where results.first?.rssi == -40 { break }
            await device.stop()
            for await results in session.scanResultUpdates() where results.isEmpty { break }
            await session.teardown()
        }
    }

    @Test func gatesOpenOneAfterAnother() async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            let session = try bench.session()
            let waiting = SessionGate.allCases.map { gate in
                Task { try await session.waitUntil(gate, timeout: .seconds(20)) }
            }
            #expect(
                await failure { try await session.waitUntil(.connected, timeout: .milliseconds(10)) }?.code == .timedOut
            )
            try await bench.connect(session)
            for task in waiting { try await task.value }
            #expect(session.facts.batteryLevel == 87)
            #expect(session.facts.firmwareRevision == "1.2.3")
            #expect(session.facts.systemID == [1, 2, 3, 4, 5, 6, 7, 8])
            try await device.session.notify([42], on: ScriptedDevice.battery, to: nil)
            for await facts in session.factUpdates() where facts.batteryLevel == 42 { break }
            async let one = session.refreshFacts()
            async let other = session.refreshFacts()
            async let version = session.read(session.services[2].characteristics[4])
            #expect(try await one.manufacturer == "Acme")
            #expect(try await other.model == "M1")
            #expect(try await version == Array("1.2.3".utf8))
            await session.teardown()
            await device.stop()
        }
    }

    @Test func aDeviceWithoutTheChannelIsConnectedAndNotReady() async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget, services: [ScriptedDevice.batteryService])
            let session = try bench.session()
            try await bench.find(session)
            try await session.connect(id: bench.gadget.peerIdentifier)
            let error = await failure { try await session.waitUntil(.commandReady, timeout: .seconds(20)) }
            #expect(error?.code == .channelMissing)
            #expect(session.state == .connected)
            #expect(await failure { try await session.run("AT") }?.code == .channelMissing)
            try await session.waitUntil(.deviceInfoReady, timeout: .seconds(20))
            await session.teardown()
            await device.stop()
        }
    }

    @Test(arguments: [DeviceProfile.nordicUART, .ffe0, .ffe5, .anyUART])
    func eachProfileFindsItsChannel(profile: DeviceProfile) async throws {
        let channel = try #require(profile.channels.last)
        let service =
            channel.outgoing == channel.incoming
            ? LocalService(
                channel.outgoing.service ?? 0xFFE0,
                characteristics: [LocalCharacteristic(channel.outgoing.characteristic, [.write, .notify])])
            : ScriptedDevice.uart(channel)
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget, services: [service])
            let session = try bench.session(profile)
            try await bench.connect(session)
            try await session.sendPayload([1, 2, 3])
            #expect(await device.packets(1) == [[1, 2, 3]])
            await session.teardown()
            await device.stop()
        }
    }

    @Test func aRefusedSubscriptionIsToldByTheGate() async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget, services: [ScriptedDevice.uart(.nordicUART)])
            bench.gadget.inject(.nextSubscribe(answers: .insufficientAuthentication))
            let session = try bench.session()
            let error = await failure { try await bench.connect(session) }
            #expect(error?.code == .channelFailed)
            #expect(error?.cause?.att == .insufficientAuthentication)
            await session.teardown()
            await device.stop()
        }
    }

    // MARK: What goes wrong

    @Test func anAdapterThatIsOffFailsTheScanWithAdvice() async throws {
        try await bench.clock.run { [bench] () async throws in
            bench.phone.setPowered(false)
            let session = try bench.session()
            let error = await failure { try await session.startScan() }
            #expect(error?.code == .radioUnavailable)
            #expect(error?.cause?.code == .poweredOff)
            #expect(error.map { session.state == .failed($0) } == true)
            bench.phone.setPowered(true)
            try await session.startScan()
            #expect(session.state == .scanning)
            bench.phone.setPowered(false)
            while session.scanInterruption == nil { try await bench.clock.sleep(for: .milliseconds(10)) }
            bench.phone.setPowered(true)
            while session.scanInterruption != nil { try await bench.clock.sleep(for: .milliseconds(10)) }
            await session.teardown()
        }
    }

    /// The failure of `connect` as a value: the compiler crashes on some closures in closures (Swift 6.3.1).
    private func failureOfConnecting(_ session: DeviceSession, _ peer: PeerIdentifier) async -> DeviceSessionError? {
        await failure { try await session.connect(id: peer) }
    }

    @Test func aDeviceThatNobodyKnowsCannotBeConnectedTo() async throws {
        let session = try bench.session()
        let error = await failureOfConnecting(session, PeerIdentifier("nobody"))
        #expect(error?.code == .peerNotFound)
        #expect(error.map { session.state == .failed($0) } == true)
        await session.teardown()
    }

    @Test func aConnectionThatFailsIsAFailureAndMayBeTriedAgain() async throws {
        let peer = bench.gadget.peerIdentifier
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            let session = try bench.session()
            try await bench.find(session)
            bench.gadget.inject(.nextConnectHangs)
            let error = await failureOfConnecting(session, peer)
            #expect(error?.code == .timedOut)
            let verdict = await failure { try await session.waitUntil(.connected, timeout: .seconds(1)) }
            #expect(verdict == error)
            try await bench.connect(session)
            #expect(await failureOfConnecting(session, peer)?.code == .busy)
            let scan = await failure { try await session.startScan() }
            #expect(scan?.code == .invalidState)
            await session.teardown()
            await device.stop()
        }
    }

    @Test(arguments: ["scanning", "connecting", "discovering", "ready", "command", "exclusive"])
    func aLossOrAnEndInEachStateLeavesNothingBehind(step: String) async throws {
        // Where there is no link yet, none can be lost.
        let ends = step == "connecting" ? ["disconnect", "teardown"] : ["disconnect", "teardown", "drop"]
        for end in ends {
            let bench = Bench(conditions: Conditions(connectionTime: .seconds(1), discoveryTime: .seconds(1)))
            try await bench.clock.run { () async throws in
                let device = try await ScriptedDevice(on: bench.gadget, script: modem)
                let session = try bench.session()
                try await bench.find(session)
                let work = Task { () -> DeviceSessionError? in
                    if step == "scanning" { return nil }
                    return await failure {
                        try await session.connect(id: bench.gadget.peerIdentifier)
                        try await session.waitUntil(.commandReady, timeout: .seconds(60))
                        if step == "command" { _ = try await session.run("AT+SILENT", timeout: .seconds(60)) }
                        if step == "exclusive" {
                            try await session.withExclusiveSession { () async throws in
                                _ = try await session.run("AT+SILENT", timeout: .seconds(60))
                            }
                        }
                        if step == "ready" {
                            try await bench.clock.sleep(for: .seconds(20))
                            _ = try await session.run("AT")
                        }
                    }
                }
                let pause: Duration =
                    switch step {
                    case "scanning", "connecting": .milliseconds(500)
                    case "discovering": .milliseconds(1_500)
                    default: .seconds(10)
                    }
                try await bench.clock.sleep(for: pause)
                switch end {
                case "disconnect": await session.disconnect()
                case "teardown": await session.teardown()
                default: bench.medium.drop(between: bench.phone, and: bench.gadget)
                }
                let error = await work.value
                if step != "scanning" {
                    let codes: [DeviceSessionError.Code] = [.disconnected, .cancelled, .tornDown, .notConnected]
                    #expect(error.map { codes.contains($0.code) } == true, "\(step), \(end): \(error as Any)")
                }
                await session.teardown()
                #expect(bench.medium.links.isEmpty, "\(step), \(end)")
                #expect(await failure { try await session.run("AT") }?.code == .tornDown)
                #expect(await failure { try await session.startScan() }?.code == .tornDown)
                #expect(await failure { try await session.connect(id: bench.gadget.peerIdentifier) }?.code == .tornDown)
                await device.stop()
            }
        }
    }

    @Test(arguments: [0, 500, 1_500, 3_500])
    func aCancelledConnectLeavesNoLink(milliseconds: Int) async throws {
        let bench = Bench(conditions: Conditions(connectionTime: .seconds(1), discoveryTime: .seconds(1)))
        try await bench.clock.run { () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            let session = try bench.session()
            try await bench.find(session)
            let task = Task {
                try await session.connect(id: bench.gadget.peerIdentifier)
                try await session.waitUntil(.deviceInfoReady, timeout: .seconds(9))
            }
            try await bench.clock.sleep(for: .milliseconds(milliseconds))
            task.cancel()
            _ = await task.result
            if milliseconds < 1_000 {
                #expect(session.state == .idle)
                #expect(bench.medium.links.isEmpty)
            } else {
                #expect(session.state == .connected)
            }
            await session.teardown()
            #expect(bench.medium.links.isEmpty)
            await device.stop()
        }
    }

    @Test func teardownEndsPendingCallsAndStreams() async throws {
        try await bench.withSession { (session, device) async throws in
            let calls = [
                Task { try await session.run("AT+SILENT", timeout: .seconds(60)) },
                Task { try await session.run("AT") },
            ]
            let gate = Task { try await session.waitUntil(.connected, timeout: .seconds(9)) }
            try await gate.value
            let (events, results, facts) = (session.events, session.scanResultUpdates(), session.factUpdates())
            await device.pause(.milliseconds(10))
            async let first: Void = session.teardown()
            async let second: Void = session.teardown()
            _ = await (first, second)
            for call in calls { #expect(await failure { try await call.value }?.code == .tornDown) }
            // Not in a task of its own: the bench's clock cancels this one where a stream does not end.
            for await _ in events {}
            for await _ in results {}
            for await _ in facts {}
            try Task.checkCancellation()
        }
    }

    @Test func aSessionThatIsReleasedTakesItsLinkDown() async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            weak var released: DeviceSession?
            do {
                let session = try bench.session()
                released = session
                try await bench.connect(session)
                #expect(bench.medium.links.count == 1)
            }
            while !bench.medium.links.isEmpty { try await bench.clock.sleep(for: .milliseconds(10)) }
            #expect(released == nil)
            await device.stop()
        }
    }

    @Test func changesAreSeenByObservation() async throws {
        try await bench.clock.run { [bench] () async throws in
            let device = try await ScriptedDevice(on: bench.gadget)
            let session = try bench.session()
            let changes = Locked(0)
            withObservationTracking {
                _ = session.state
            } onChange: {
                changes.withLock { $0 += 1 }
            }
            try await session.startScan()
            #expect(changes.withLock { $0 } == 1)
            await session.teardown()
            await device.stop()
        }
    }
}
