// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@Suite struct MediumTests {
    let clock: ManualClock
    let medium: SimulatedMedium
    let host: SimulatedRadio
    let phone: SimulatedRadio

    static let service: BluetoothUUID = 0xFE01
    static let message: BluetoothUUID = 0xFE02
    static let place = LocalCharacteristicID(service: 0, characteristic: 0)
    static let services = [
        LocalService(service, characteristics: [LocalCharacteristic(message, [.read, .write, .notify])])
    ]
    static let advertisement = AdvertisementRequest(localName: "host", serviceUUIDs: [service])

    init() {
        clock = ManualClock()
        medium = SimulatedMedium(clock: clock, seed: 3)
        host = medium.addAdapter(name: "host")
        phone = medium.addAdapter(name: "phone")
    }

    // MARK: - Advertising

    @Test func anAdvertiserIsHeardOnceAnInterval() async throws {
        let reports = try await count(of: .milliseconds(100), during: .seconds(1))
        #expect(reports == 11)
        #expect(try await count(of: .milliseconds(250), during: .seconds(1)) == 5)
    }

    @Test func withoutAWishTheIntervalIsBlueZsDefault() async throws {
        #expect(try await count(of: nil, during: .seconds(4)) == 4)
    }

    @Test func whoListensLaterHearsTheRhythmThatWasThere() async throws {
        let session = try await host.serve([], advertising: Self.advertisement)
        await clock.advance(by: .milliseconds(130))
        let scan = try await phone.scan(for: ScanFilter())
        let clock = clock
        let first = try await clock.run { await scan.firstDiscovery() }
        #expect(first != nil)
        #expect(clock.elapsed == .milliseconds(200))
        await scan.stop()
        await session.stop()
    }

    @Test func nothingIsDueWhileNobodyListens() async throws {
        let session = try await host.serve(Self.services, advertising: Self.advertisement)
        #expect(await clock.advanceToNextDeadline() == false)
        await session.stop()
    }

    @Test(arguments: [0.0, 0.25, 0.9, 1.0])
    func lostAdvertisementsAreAsManyAsAskedForAndTheSameUnderOneSeed(loss: Double) async throws {
        var counts: [Int] = []
        for _ in 1...2 {
            let test = MediumTests()
            test.medium.conditions.advertisementLoss = loss
            counts.append(try await test.count(of: .milliseconds(20), during: .seconds(4)))
        }
        #expect(counts[0] == counts[1])
        let heard = Double(counts[0]) / 201
        #expect(abs(heard - (1 - loss)) < 0.1)
    }

    /// Counts reports with a scan that is on when the advertiser starts.
    private func count(of interval: Duration?, during period: Duration) async throws -> Int {
        var request = Self.advertisement
        request.interval = interval.map { $0...$0 }
        let scan = try await phone.scan(for: ScanFilter())
        let counter = Task { await scan.events.reduce(0) { count, _ in count + 1 } }
        let session = try await host.serve([], advertising: request)
        await clock.advance(by: period)
        await scan.stop()
        await session.stop()
        return await counter.value
    }

    @Test func advertisingPausesWhileACentralIsConnectedIfTheControllerIsSo() async throws {
        host.configuration.pausesAdvertisingWhileConnected = true
        let (session, connection) = try await connect()
        let scan = try await phone.scan(for: ScanFilter())
        let counter = Task { await scan.events.reduce(0) { count, _ in count + 1 } }
        await clock.advance(by: .seconds(2))
        await scan.stop()
        #expect(await counter.value == 0)
        await connection.disconnect()
        #expect(try await find() != nil)
        await session.stop()
    }

    @Test func rssiMayBeSetForEachDirectionAtAnyTime() async throws {
        medium.conditions.rssi = -70
        let session = try await host.serve([], advertising: Self.advertisement)
        #expect(try await find()?.rssi == -70)
        medium.setRSSI(-40, from: host, to: phone)
        #expect(try await find()?.rssi == -40)
        medium.setRSSI(-41, from: phone, to: host)
        #expect(try await find()?.rssi == -40)
        for rssi in [nil, 127, 0, -128] as [Int?] {
            medium.setRSSI(rssi, between: phone, and: host)
            #expect(try await find()?.rssi == rssi)
        }
        await session.stop()
    }

    // MARK: - Links

    @Test(arguments: [
        (23, nil, 23), (185, nil, 185), (517, 185, 185), (185, 517, 185), (9_999, nil, 517), (1, nil, 23),
    ])
    func aLinksMTUIsTheLeastOfWhatIsOffered(own: Int, pair: Int?, expected: Int) async throws {
        phone.configuration.maximumMTU = own
        medium.setMTU(pair, between: phone, and: host)
        let (session, connection) = try await connect()
        #expect(await connection.attMTU == expected)
        #expect(medium.links.map(\.attMTU) == [expected])
        await connection.disconnect()
        await session.stop()
    }

    @Test func aPeerThatWalksAwayIsMissedAfterTheSupervisionTimeout() async throws {
        let (session, connection) = try await connect()
        let start = clock.elapsed
        medium.setInRange(false, between: host, and: phone)
        #expect(medium.isConnected(phone, to: host))
        let reason = try await clock.run { await connection.disconnection() }
        #expect(reason == .timeout)
        #expect(clock.elapsed - start == .seconds(4))
        await session.stop()
    }

    @Test func aPeerThatComesBackInTimeIsNotMissed() async throws {
        let (session, connection) = try await connect()
        medium.setInRange(false, between: host, and: phone)
        await clock.advance(by: .seconds(3))
        medium.setInRange(true, between: host, and: phone)
        await clock.advance(by: .seconds(30))
        #expect(medium.isConnected(phone, to: host))
        await connection.disconnect()
        await session.stop()
    }

    @Test(arguments: [DisconnectReason.local, .remote, .timeout, .adapterLost, .unknown])
    func aLinkDropsForTheReasonThatIsGiven(reason: DisconnectReason) async throws {
        let (session, connection) = try await connect()
        #expect(medium.drop(between: host, and: phone, reason: reason))
        #expect(medium.drop(between: host, and: phone) == false)
        #expect(await connection.disconnection() == reason)
        await session.stop()
    }

    @Test func latencyCountsBothWays() async throws {
        let (session, connection) = try await connect()
        let answering = Task { await session.acceptAll() }
        let characteristic = try #require(try await connection.discoverServices().first?.characteristics.first)
        medium.conditions.latency = .milliseconds(30)
        let start = clock.elapsed
        try await clock.run { try await connection.write([1], to: characteristic, type: .withResponse) }
        #expect(clock.elapsed - start == .milliseconds(60))
        await connection.disconnect()
        await session.stop()
        await answering.value
    }

    @Test func aLinkOutlivesItsForgottenConnectionAsWithBlueZ() async throws {
        let session = try await connect().0
        #expect(medium.links.count == 1)
        await session.stop()
    }

    @Test func anAdapterLeavesWithAllThatUsedIt() async throws {
        let session = try await host.serve(Self.services, advertising: Self.advertisement)
        var guest: SimulatedRadio? = medium.addAdapter(name: "guest")
        var connection = try await connect(from: try #require(guest))
        guest = nil
        #expect(medium.links.count == 1)
        connection = nil
        #expect(medium.links.isEmpty)
        #expect(connection == nil)
        await session.stop()
    }

    @Test func twoAdaptersNeverHaveOneAddress() {
        let address = BluetoothAddress("02:00:00:00:00:01")
        let one = medium.addAdapter(address: address)
        let other = medium.addAdapter(address: address)
        #expect(one.address != other.address)
    }

    // MARK: - Capacities

    @Test func advertisementsLinksAndCentralsHaveTheirNumber() async throws {
        let (clock, host) = (clock, host)
        host.configuration.maximumAdvertisements = 1
        host.configuration.maximumCentrals = 1
        let (session, connection) = try await connect()
        let refused = await #expect(throws: BluetoothError.self) {
            _ = try await host.serve([], advertising: Self.advertisement)
        }
        #expect(refused?.code == .advertisingFailed)
        let other = medium.addAdapter()
        let late = await #expect(throws: BluetoothError.self) {
            try await clock.run {
                let scan = try await other.scan(for: ScanFilter())
                _ = await scan.firstDiscovery()
                await scan.stop()
                _ = try await other.connect(to: host.peerIdentifier, timeout: .seconds(3))
            }
        }
        #expect(late?.code == .timedOut)
        await connection.disconnect()
        await session.stop()
    }

    @Test func aConnectWaitsForARoomThatBecomesFree() async throws {
        host.configuration.maximumCentrals = 1
        let (session, connection) = try await connect()
        let other = medium.addAdapter()
        let host = host
        let clock = clock
        let waiting = Task {
            try await clock.run {
                let scan = try await other.scan(for: ScanFilter())
                _ = await scan.firstDiscovery()
                await scan.stop()
                return try await other.connect(to: host.peerIdentifier, timeout: .seconds(60))
            }
        }
        await clock.settle()
        await connection.disconnect()
        let second = try await waiting.value
        await second.disconnect()
        await session.stop()
    }

    /// One host, a thousand clients one after another: what it costs must not grow.
    @Test func aThousandClientsComeAndGo() async throws {
        let (medium, clock, host) = (medium, clock, host)
        let session = try await host.serve(Self.services, advertising: Self.advertisement)
        let answering = Task { await session.acceptAll() }
        try await clock.run {
            for _ in 1...1_000 {
                let client = medium.addAdapter()
                let scan = try await client.scan(for: ScanFilter(services: [Self.service]))
                _ = await scan.firstDiscovery()
                await scan.stop()
                let connection = try await client.connect(to: host.peerIdentifier, timeout: .seconds(10))
                let services = try await connection.discoverServices(awaiting: Self.message)
                guard let characteristic = services.first?.characteristics.first else { return }
                _ = try await connection.subscribe(to: characteristic)
                try await connection.write([1], to: characteristic, type: .withResponse)
                await connection.disconnect()
            }
        }
        #expect(medium.links.isEmpty)
        #expect(clock.elapsed <= .seconds(101))
        await session.stop()
        await answering.value
    }

    @Test func aMediumWorksOnRealTimeToo() async throws {
        let medium = SimulatedMedium(clock: ContinuousClock(), conditions: Conditions(latency: .milliseconds(1)))
        let host = medium.addAdapter()
        let phone = medium.addAdapter()
        var request = Self.advertisement
        request.interval = .milliseconds(20)...(.milliseconds(20))
        let session = try await host.serve(Self.services, advertising: request)
        let answering = Task { await session.acceptAll() }
        let scan = try await phone.scan(for: ScanFilter())
        #expect(await scan.firstDiscovery() != nil)
        await scan.stop()
        let connection = try await phone.connect(to: host.peerIdentifier, timeout: .seconds(10))
        let characteristic = try #require(try await connection.discoverServices().first?.characteristics.first)
        try await connection.write([1], to: characteristic, type: .withResponse)
        await connection.disconnect()
        await session.stop()
        await answering.value
    }
}

extension MediumTests {
    func find() async throws -> Discovery? {
        let phone = phone
        return try await clock.run {
            let scan = try await phone.scan(for: ScanFilter())
            let discovery = await scan.firstDiscovery()
            await scan.stop()
            return discovery
        }
    }

    func connect() async throws -> (any PeripheralSession, any PeripheralConnection) {
        let session = try await host.serve(Self.services, advertising: Self.advertisement)
        let connection = try await connect(from: phone)
        return (session, try #require(connection))
    }

    func connect(from central: SimulatedRadio) async throws -> (any PeripheralConnection)? {
        let host = host
        return try await clock.run {
            let scan = try await central.scan(for: ScanFilter())
            _ = await scan.firstDiscovery()
            await scan.stop()
            return try await central.connect(to: host.peerIdentifier, timeout: .seconds(10))
        }
    }
}

extension Scan {
    func firstDiscovery() async -> Discovery? {
        for await event in events {
            if case .discovered(let discovery) = event { return discovery }
        }
        return nil
    }
}

extension PeripheralSession {
    /// Accepts every write until the session ends.
    func acceptAll() async {
        for await event in events {
            if case .write(let request) = event { await respond(to: request.id, with: .accept) }
        }
    }
}
