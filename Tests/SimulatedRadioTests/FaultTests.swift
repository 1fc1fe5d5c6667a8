// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

/// What goes wrong because a test wants it to.
@Suite struct FaultTests {
    let test = MediumTests()

    private func prepared() async throws -> (any PeripheralSession, any PeripheralConnection, RemoteCharacteristic) {
        let (session, connection) = try await test.connect()
        Task { await session.acceptAll() }
        let characteristic = try #require(try await connection.discoverServices().first?.characteristics.first)
        return (session, connection, characteristic)
    }

    @Test func aConnectFailsOnceAsInjected() async throws {
        let session = try await test.host.serve(MediumTests.services, advertising: MediumTests.advertisement)
        test.host.inject(.nextConnect(fails: BluetoothError(.connectionFailed, "le-connection-abort-by-local")))
        let error = await #expect(throws: BluetoothError.self) { _ = try await test.connect(from: test.phone) }
        #expect(error?.message == "le-connection-abort-by-local")
        let connection = try await test.connect(from: test.phone)
        await connection?.disconnect()
        await session.stop()
    }

    @Test func aConnectHangsUntilItsTimeout() async throws {
        let session = try await test.host.serve(MediumTests.services, advertising: MediumTests.advertisement)
        test.host.inject(.nextConnectHangs)
        let error = await #expect(throws: BluetoothError.self) { _ = try await test.connect(from: test.phone) }
        #expect(error?.code == .timedOut)
        #expect(test.medium.links.isEmpty)
        await session.stop()
    }

    @Test func writesAreRefusedInTheOrderOfInjection() async throws {
        let (session, connection, characteristic) = try await prepared()
        for error in [ATTError.application, .insufficientEncryption] { test.host.inject(.nextWrite(answers: error)) }
        for expected in [ATTError.application, .insufficientEncryption] {
            let error = await #expect(throws: BluetoothError.self) {
                try await connection.write([1], to: characteristic, type: .withResponse)
            }
            #expect(error?.att == expected)
        }
        try await connection.write([1], to: characteristic, type: .withResponse)
        await connection.disconnect()
        await session.stop()
    }

    @Test func readsAndSubscriptionsAreRefusedOnce() async throws {
        let (session, connection, characteristic) = try await prepared()
        test.host.inject(.nextRead(answers: .insufficientAuthentication))
        test.host.inject(.nextSubscribe(answers: .insufficientResources))
        let read = await #expect(throws: BluetoothError.self) { _ = try await connection.read(characteristic) }
        #expect(read?.att == .insufficientAuthentication)
        let subscribe = await #expect(throws: BluetoothError.self) {
            _ = try await connection.subscribe(to: characteristic)
        }
        #expect(subscribe?.att == .insufficientResources)
        _ = try await connection.subscribe(to: characteristic)
        await connection.disconnect()
        await session.stop()
    }

    @Test func aLinkDropsInPlaceOfAnAnswer() async throws {
        let (session, connection, characteristic) = try await prepared()
        test.host.inject(.nextWriteDropsLink)
        let error = await #expect(throws: BluetoothError.self) {
            try await connection.write([1], to: characteristic, type: .withResponse)
        }
        #expect(error?.code == .disconnected)
        #expect(await connection.disconnection() == .timeout)
        await session.stop()
    }

    @Test func aDiscoveryTakesItsTime() async throws {
        let (session, connection) = try await test.connect()
        test.host.inject(.nextDiscoveryTakes(.seconds(7)))
        let start = test.clock.elapsed
        _ = try await test.clock.run { try await connection.discoverServices() }
        #expect(test.clock.elapsed - start == .seconds(7))
        await connection.disconnect()
        await session.stop()
    }

    @Test(arguments: [(Duration.milliseconds(400), true), (.seconds(2), false)])
    func aCharacteristicThatIsMissingFirstIsWaitedForUpToASecond(missing: Duration, isFound: Bool) async throws {
        let (session, connection) = try await test.connect()
        test.host.inject(.nextDiscoveryLacks(MediumTests.message, for: missing))
        let start = test.clock.elapsed
        let services = try await test.clock.run {
            try await connection.discoverServices(awaiting: MediumTests.message)
        }
        #expect((services.first?.characteristics.isEmpty == false) == isFound)
        #expect(test.clock.elapsed - start == min(missing, .seconds(1)))
        await connection.disconnect()
        await session.stop()
    }

    @Test func aNotificationGetsLost() async throws {
        let (session, connection, characteristic) = try await prepared()
        let subscription = try await connection.subscribe(to: characteristic)
        test.host.inject(.nextNotificationIsLost)
        for value in [1, 2] as [UInt8] { try await session.notify([value], on: MediumTests.place, to: nil) }
        await connection.disconnect()
        let values = await subscription.values.reduce(into: []) { $0.append($1) }
        #expect(values == [[2]])
        await session.stop()
    }

    @Test func clearedFaultsDoNotHappen() async throws {
        let (session, connection, characteristic) = try await prepared()
        test.host.inject(.nextWrite(answers: .application))
        test.host.clearFaults()
        try await connection.write([1], to: characteristic, type: .withResponse)
        await connection.disconnect()
        await session.stop()
    }

    /// 512 bytes at MTU 23 as 504 and a rest, and no more than BlueZ takes from 5.56 to 5.68.
    @Test func longWritesComeAsTheStackMakesThem() async throws {
        test.host.configuration.longWrites = .split(at: 504)
        test.host.configuration.maximumMTU = 23
        let (session, connection) = try await test.connect()
        let parts = Task {
            var parts: [[Int]] = []
            for await event in session.events {
                guard case .write(let request) = event else { continue }
                parts.append([request.offset, request.value.count])
                await session.respond(to: request.id, with: .accept)
            }
            return parts
        }
        let characteristic = try #require(try await connection.discoverServices().first?.characteristics.first)
        let value = [UInt8](repeating: 7, count: 512)
        try await connection.write(value, to: characteristic, type: .withResponse)
        test.host.configuration.longestPreparedWrite = 508
        let error = await #expect(throws: BluetoothError.self) {
            try await connection.write(Array(value.prefix(509)), to: characteristic, type: .withResponse)
        }
        #expect(error?.att == .invalidAttributeValueLength)
        await connection.disconnect()
        await session.stop()
        #expect(await parts.value == [[0, 504], [504, 8]])
    }

    @Test func theRestOfALongWriteIsNotOfferedAfterARefusal() async throws {
        test.host.configuration.longWrites = .split(at: 504)
        let (session, connection) = try await test.connect()
        test.phone.configuration.maximumMTU = 23
        await connection.disconnect()
        let second = try #require(try await test.connect(from: test.phone))
        let offsets = Task {
            var offsets: [Int] = []
            for await event in session.events {
                guard case .write(let request) = event else { continue }
                offsets.append(request.offset)
                await session.respond(to: request.id, with: .refuse(.application))
            }
            return offsets
        }
        let characteristic = try #require(try await second.discoverServices().first?.characteristics.first)
        await #expect(throws: BluetoothError.self) {
            try await second.write([UInt8](repeating: 7, count: 512), to: characteristic, type: .withResponse)
        }
        await second.disconnect()
        await session.stop()
        #expect(await offsets.value == [0])
    }
}
