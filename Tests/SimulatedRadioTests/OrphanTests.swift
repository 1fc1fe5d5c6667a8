// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

/// What the kernel goes on with when a daemon is killed, as `stack/killed-…` of the lab sees it.
@Suite struct OrphanTests {
    let test = MediumTests()

    private func write(_ connection: any PeripheralConnection) async throws -> Task<BluetoothError?, Never> {
        let characteristic = try #require(try await connection.discoverServices().first?.characteristics.first)
        let writing = Self.failure { () throws(BluetoothError) in
            try await connection.write([1], to: characteristic, type: .withResponse)
        }
        await test.clock.settle()
        return writing
    }

    private static func failure(
        of body: @escaping @Sendable () async throws(BluetoothError) -> Void
    ) -> Task<BluetoothError?, Never> {
        Task {
            do throws(BluetoothError) {
                try await body()
                return nil
            } catch {
                return error
            }
        }
    }

    @Test func aPhonesLinkStaysFourSecondsAndNobodyAnswersOnIt() async throws {
        let (session, connection) = try await test.connect()
        let unanswered = try await write(connection)
        test.host.abandon()
        let unread = Self.failure { () throws(BluetoothError) in _ = try await connection.discoverServices() }
        await test.clock.advance(by: .milliseconds(3_999))
        #expect(test.medium.isConnected(test.phone, to: test.host))
        await test.clock.advance(by: .milliseconds(1))
        #expect(await connection.disconnection() == .remote)
        #expect(await unanswered.value?.code == .disconnected)
        #expect(await unread.value?.code == .disconnected)
        await session.stop()
    }

    @Test func ourOwnLinkStaysTwoSecondsAndWhatWaitedHasEnded() async throws {
        let (session, connection) = try await test.connect()
        let unanswered = try await write(connection)
        test.phone.abandon()
        #expect(await unanswered.value?.code == .resetting)
        await test.clock.advance(by: .milliseconds(1_999))
        #expect(test.medium.isConnected(test.phone, to: test.host))
        await test.clock.advance(by: .milliseconds(1))
        #expect(!test.medium.isConnected(test.phone, to: test.host))
        #expect(await connection.disconnection() == .local)
        await session.stop()
    }

    @Test func theAdvertisementStaysUntilTheAdapterIsAdopted() async throws {
        let session = try await test.host.serve(MediumTests.services, advertising: MediumTests.advertisement)
        test.host.abandon()
        let connection = try #require(try await test.connect(from: test.phone))
        #expect(test.host.adopt().map(\.peer) == [test.phone.peerIdentifier])
        await test.clock.advance(by: .seconds(4))
        #expect(await connection.disconnection() == .remote)
        #expect(test.host.adopt() == [])
        let scan = try await test.phone.scan(for: ScanFilter())
        let heard = Task { await scan.events.reduce(0) { count, _ in count + 1 } }
        await test.clock.advance(by: .seconds(5))
        await scan.stop()
        #expect(await heard.value == 0)
        #expect(await session.events.reduce(0) { count, _ in count + 1 } == 1)
    }

    @Test func whatIsAdvertisedPausesForAPhoneAndEndsWithThePower() async throws {
        let session = try await test.host.serve(MediumTests.services, advertising: MediumTests.advertisement)
        test.host.abandon()
        let connection = try #require(try await test.connect(from: test.phone))
        let scan = try await test.medium.addAdapter().scan(for: ScanFilter())
        let heard = Task { await scan.events.reduce(0) { count, _ in count + 1 } }
        await test.clock.advance(by: .milliseconds(3_999))
        test.host.setPowered(false)
        #expect(await connection.disconnection() == .remote)
        test.host.setPowered(true)
        await test.clock.advance(by: .seconds(5))
        await scan.stop()
        #expect(await heard.value == 0)
        await session.stop()
    }
}
