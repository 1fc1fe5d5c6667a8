// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

/// An adapter's switches, and what the package's other rooms see of it.
@Suite struct AdapterTests {
    let test = MediumTests()

    @Test func everySwitchHasItsStateAndItsError() async throws {
        let phone = test.phone
        let cases: [(off: () -> Void, on: () -> Void, state: AdapterState, code: BluetoothError.Code)] = [
            ({ phone.setPowered(false) }, { phone.setPowered(true) }, .poweredOff, .poweredOff),
            ({ phone.unplug() }, { phone.plug() }, .unsupported, .adapterNotFound),
            ({ phone.stopService() }, { phone.startService() }, .resetting, .serviceUnavailable),
        ]
        for example in cases {
            var states = phone.adapterStatuses().makeAsyncIterator()
            #expect(await states.next()?.state == .poweredOn)
            example.off()
            #expect(await states.next()?.state == example.state)
            let scan = await #expect(throws: BluetoothError.self) { _ = try await phone.scan(for: ScanFilter()) }
            #expect(scan?.code == example.code)
            let serve = await #expect(throws: BluetoothError.self) { _ = try await phone.serve([], advertising: nil) }
            #expect(serve?.code == example.code)
            example.on()
            #expect(await states.next()?.state == .poweredOn)
        }
    }

    @Test func aSlowReaderKeepsTheNewest16States() async throws {
        let statuses = test.phone.adapterStatuses()
        for _ in 1...20 {
            test.phone.setPowered(false)
            test.phone.setPowered(true)
        }
        var states = statuses.makeAsyncIterator()
        var read: [AdapterState] = []
        for _ in 1...16 { read.append(try #require(await states.next()).state) }
        #expect(read == (1...8).flatMap { _ in [.poweredOff, .poweredOn] })
        test.phone.unplug()
        #expect(await states.next()?.state == .unsupported)
    }

    @Test func anUnpluggedPeripheralIsLostByTimeoutAndComesBack() async throws {
        let (session, connection) = try await test.connect()
        test.host.unplug()
        #expect(await connection.disconnection() == .timeout)
        test.host.plug()
        let again = try await test.connect(from: test.phone)
        await again?.disconnect()
        await session.stop()
    }

    @Test func aRestartTakesItsDowntime() async throws {
        let session = try await test.host.serve(MediumTests.services, advertising: MediumTests.advertisement)
        test.host.restartService(downFor: .seconds(3))
        #expect(test.host.status.state == .resetting)
        await test.clock.advance(by: .seconds(3))
        #expect(test.host.status.state == .poweredOn)
        await session.stop()
        let events = await session.events.reduce(into: []) { $0.append($1) }
        #expect(events.count == 3)
        #expect(events.first == .serving(advertising: true, degraded: nil))
        #expect(events.last == .serving(advertising: true, degraded: nil))
    }

    @Test func aReleasedScanIsOver() async throws {
        let session = try await test.host.serve([], advertising: MediumTests.advertisement)
        var scan: Scan? = try await test.phone.scan(for: ScanFilter())
        #expect(await test.clock.advanceToNextDeadline())
        scan = nil
        #expect(scan == nil)
        // Only the memory of the device is still due.
        await test.clock.advanceToNextDeadline()
        #expect(await test.clock.advanceToNextDeadline() == false)
        await session.stop()
    }

    @Test func aDeviceIsRememberedFor30SecondsAfterItWasHeard() async throws {
        let session = try await test.host.serve([], advertising: MediumTests.advertisement)
        _ = try await test.find()
        await session.stop()
        #expect(test.phone.knownPeers == [test.host.peerIdentifier])
        await test.clock.advance(by: .seconds(29))
        #expect(test.phone.knownPeers == [test.host.peerIdentifier])
        await test.clock.advance(by: .seconds(1))
        #expect(test.phone.knownPeers == [])
    }

    // MARK: - A slow app

    @Test func aRequestBeyondTheBufferIsRefusedAndNoEventIsLost() async throws {
        let (session, connection) = try await test.connect()
        let characteristic = try #require(try await connection.discoverServices().first?.characteristics.first)
        let writes = (1...250).map { _ in
            Task { try await connection.write([1], to: characteristic, type: .withResponse) }
        }
        // Each is answered with "unlikely error" after 5 s: one after another they fill the buffer.
        let clock = test.clock
        try await clock.run { for write in writes { _ = await write.result } }
        // serving, connected, 250 writes: four are free.
        for _ in 1...4 {
            let full = Task { try await connection.write([2], to: characteristic, type: .withResponse) }
            _ = try await clock.run { await full.result }
        }
        let error = await #expect(throws: BluetoothError.self) {
            try await connection.write([3], to: characteristic, type: .withResponse)
        }
        #expect(error?.att == .insufficientResources)
        await connection.disconnect()
        await session.stop()
        let events = await session.events.reduce(into: []) { $0.append($1) }
        #expect(events.count == 256)
        #expect(events.last == .disconnected(test.phone.peerIdentifier))
    }

    @Test func anAdapterThatNobodyReadsDoesNotHoldUpAnother() async throws {
        let session = try await test.host.serve([], advertising: MediumTests.advertisement)
        let deaf = try await test.phone.scan(for: ScanFilter())
        let other = test.medium.addAdapter()
        let scan = try await other.scan(for: ScanFilter())
        let counter = Task { await scan.events.reduce(0) { count, _ in count + 1 } }
        await test.clock.advance(by: .seconds(100))
        await scan.stop()
        #expect(await counter.value >= 1_000)
        await deaf.stop()
        // The newest 256 were kept.
        #expect(await deaf.events.reduce(0) { count, _ in count + 1 } == 256)
        await session.stop()
    }

    // MARK: - Hooks

    @Test func anObserverSeesReportsLinksAndSubscriptionsOfBothEnds() async throws {
        let log = Transcript()
        let tokens = [("host", test.host), ("phone", test.phone)].map { name, radio in
            radio.observe { log.add(name, $0) }
        }
        let session = try await test.host.open(MediumTests.services, advertising: MediumTests.advertisement)
        let connection = try #require(try await test.connect(from: test.phone))
        let characteristic = try #require(try await connection.discoverServices().first?.characteristics.first)
        _ = try await connection.subscribe(to: characteristic)
        #expect(session.subscribers(of: MediumTests.place).map(\.peer) == [test.phone.peerIdentifier])
        #expect(session.subscribers(of: MediumTests.place).map(\.attMTU) == [517])
        #expect(characteristic.simulatedHandle == (session.serviceHandles.first ?? 0) + 1)
        #expect(test.host.links.map(\.isCentral) == [false])
        #expect(test.phone.links.map(\.isCentral) == [true])
        test.host.disconnect(test.phone.peerIdentifier)
        #expect(
            log.lines == [
                "phone report", "phone up central", "host up peripheral", "host subscribed", "host unsubscribed",
                "phone down remote", "host down local",
            ])
        for token in tokens { token.cancel() }
        test.host.setPowered(false)
        #expect(log.lines.count == 7)
        test.host.setPowered(true)
        await session.stop()
    }

    @Test func aRequestSaysHowItCame() async throws {
        let services = [
            LocalService(
                MediumTests.service,
                characteristics: [LocalCharacteristic(MediumTests.message, [.write, .writeWithoutResponse])]
            )
        ]
        test.host.configuration.maximumMTU = 64
        let session = try await test.host.open(services, advertising: MediumTests.advertisement)
        let connection = try #require(try await test.connect(from: test.phone))
        let characteristic = try #require(try await connection.discoverServices().first?.characteristics.first)
        let details = Task {
            var details: [String] = []
            for await event in session.events {
                guard case .write(let request) = event, let found = session.details(of: request.id) else { continue }
                details.append("\(found.isCommand) \(found.isPrepared) \(found.link.attMTU)")
                await session.respond(to: request.id, with: .accept)
                if session.details(of: request.id) != nil { details.append("still there") }
            }
            return details
        }
        try await connection.write([1], to: characteristic, type: .withoutResponse)
        try await connection.write([1], to: characteristic, type: .withResponse)
        try await connection.write([UInt8](repeating: 1, count: 62), to: characteristic, type: .withResponse)
        await connection.disconnect()
        await session.stop()
        #expect(await details.value == ["true false 64", "false false 64", "false true 64"])
    }

    @Test func aResetAdapterHasNothingLeft() async throws {
        let (session, connection) = try await test.connect()
        let scan = try await test.host.scan(for: ScanFilter())
        test.host.reset()
        #expect(await connection.disconnection() == .remote)
        #expect(test.medium.links.isEmpty)
        #expect(await scan.events.reduce(0) { count, _ in count + 1 } == 0)
        let events = await session.events.reduce(into: []) { $0.append($1) }
        #expect(events.first == .serving(advertising: true, degraded: nil))
        #expect(test.host.status.state == .poweredOn)
    }

    @Test func aRememberedDeviceCanBeConnectedToUnheard() async throws {
        let session = try await test.host.serve([], advertising: MediumTests.advertisement)
        test.phone.remember(test.host)
        let connection = try await test.phone.connect(to: test.host.peerIdentifier, timeout: .seconds(1))
        test.phone.forget(test.host.peerIdentifier)
        #expect(await connection.disconnection() == .local)
        #expect(test.phone.knownPeers == [])
        await session.stop()
    }
}

/// What observers were told, as text.
final class Transcript: Sendable {
    private let log = ObservationLog()

    func add(_ name: String, _ observation: AdapterObservation) {
        switch observation {
        case .report: log.add("\(name) report")
        case .linkUp(let link): log.add("\(name) up \(link.isCentral ? "central" : "peripheral")")
        case .linkDown(_, let reason): log.add("\(name) down \(reason)")
        case .status(let status): log.add("\(name) \(status.state)")
        case .subscribed: log.add("\(name) subscribed")
        case .unsubscribed: log.add("\(name) unsubscribed")
        }
    }

    var lines: [String] { log.lines }
}
