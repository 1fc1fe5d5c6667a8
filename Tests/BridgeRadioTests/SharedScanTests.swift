// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Testing

@testable import BridgeRadio

/// Several scans of one radio, which the bridge knows as one.
@Suite(.timeLimit(.minutes(1))) struct SharedScanTests {
    private let fake: FakeBridge
    private let core: BridgeCore

    init() throws {
        fake = try FakeBridge()
        core = fake.core
    }

    private struct LocalScan {
        let id: Int
        let start: Task<Void, any Error>
        let events: Recorder<ScanEvent>

        func heard() async throws {
            _ = try await events.next(within: .seconds(10), "a device is heard") { event in
                if case .discovered = event { true } else { nil }
            }
        }
    }

    private func scan(_ services: Set<BluetoothUUID>) -> LocalScan {
        let (stream, continuation) = AsyncStream.makeStream(of: ScanEvent.self)
        let (id, core) = (core.newNumber(), core)
        let start = Task { try await core.startScan(id, ScanFilter(services: services), continuation) }
        return LocalScan(id: id, start: start, events: Recorder(stream, clock: ContinuousClock()))
    }

    private func scans(_ count: Int) async throws {
        try await eventually("\(count) scans") { [core] in await core.scanCount == count }
    }

    private func told() async throws -> (request: BridgeRequest, services: [BluetoothUUID]) {
        let request = try await fake.next("startScan")
        guard case .startScan(let services, _) = request.command else {
            throw ContractViolation(description: "\(request)")
        }
        return (request, services)
    }

    /// Everything that the radio has sent before this has been recorded when it returns.
    private func fence() async throws {
        let call = Task { [core] in try await core.call(.stopAdvertise(session: "fence")) }
        fake.accept(try await fake.next("stopAdvertise"))
        _ = try await call.value
    }

    private func advertise(_ service: BluetoothUUID) {
        fake.send(.advertisementFound(address: "00:00:5E:00:53:01", Advertisement(serviceUUIDs: [service]), rssi: -50))
    }

    @Test func aScanThatIsCancelledDoesNotSilenceAnotherThatWantsTheSame() async throws {
        let first = scan([0x180D])
        let start = try await told().request
        let second = scan([0x180D])
        try await scans(2)
        first.start.cancel()
        try await requireError(.cancelled, from: "the first scan") { try await first.start.value }
        fake.accept(start)
        try await second.start.value
        try await fence()
        #expect(await fake.requests.take { $0.command == .stopScan ? true : nil } == nil)
        advertise(0x180D)
        try await second.heard()
        await core.shutDown()
    }

    @Test func aScanStartsOnceTheBridgeHasSaidSo() async throws {
        let first = scan([0x180D])
        let start = try await told().request
        let second = scan([0x180D])
        try await scans(2)
        let refusal = BluetoothError(.unauthorized, "it may not scan")
        fake.send(.scanFailed(refusal), answering: start)
        try await requireError(.unauthorized, from: "the first scan") { try await first.start.value }
        try await requireError(.unauthorized, from: "the second scan") { try await second.start.value }
        _ = try await fake.next("stopScan")
        await core.shutDown()
    }

    @Test func aScanThatIsRefusedLeavesTheOthersAsTheyWere() async throws {
        let first = scan([0x180D])
        fake.accept(try await told().request)
        try await first.start.value
        let second = scan([0x180F])
        let both = try await told()
        #expect(both.services == [0x180D, 0x180F])
        let third = scan([0x1810])
        try await scans(3)
        fake.send(.scanFailed(BluetoothError(.busy, "not now")), answering: both.request)
        try await requireError(.busy, from: "the second scan") { try await second.start.value }
        // One call after another, and without what was refused.
        let again = try await told()
        #expect(again.services == [0x180D, 0x1810])
        fake.accept(again.request)
        try await third.start.value
        advertise(0x180D)
        try await first.heard()
        #expect(await first.events.take { if case .paused = $0 { true } else { nil } } == nil)
        await core.shutDown()
    }

    /// However it answers what it had been asked for before: what it still does is not known then.
    @Test func aBridgeThatRefusesIsToldThatNobodyScansAnyMore() async throws {
        let first = scan([0x180D])
        fake.accept(try await told().request)
        try await first.start.value
        let second = scan([0x180F])
        fake.accept(try await told().request)
        try await second.start.value
        async let firstStop: Void = core.stopScans([first.id])
        let less = try await told()
        #expect(less.services == [0x180F])
        async let secondStop: Void = core.stopScans([second.id])
        try await scans(0)
        fake.send(.scanFailed(BluetoothError(.busy, "not now")), answering: less.request)
        await firstStop
        await secondStop
        try await fence()
        #expect(await fake.requests.take { $0.command == .stopScan ? true : nil } == true)
        await core.shutDown()
    }

    /// The contract: the radio's work is over before the cancelled call throws.
    @Test func aScanThatNobodySharesIsCalledOff() async throws {
        let only = scan([0x180D])
        let start = try await told().request
        only.start.cancel()
        let cancel = try await fake.next("cancel")
        #expect(cancel.command == .cancel(target: try #require(start.id)))
        fake.send(.scanFailed(.cancelled), answering: start)
        try await requireError(.cancelled, from: "the scan") { try await only.start.value }
        try await fence()
        #expect(await fake.requests.take { $0.command == .stopScan ? true : nil } == true)
        await core.shutDown()
    }

    @Test func scansThatWaitForABridgeThatGoesFail() async throws {
        let first = scan([0x180D])
        _ = try await told()
        let second = scan([0x180F])
        try await scans(2)
        fake.socket.close()
        try await requireError(.resetting, from: "the first scan") { try await first.start.value }
        try await requireError(.resetting, .serviceUnavailable, from: "the second scan") {
            try await second.start.value
        }
        await core.shutDown()
    }
}

extension BridgeCore {
    fileprivate var scanCount: Int { scans.count }
}
