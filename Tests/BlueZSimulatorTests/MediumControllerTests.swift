// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@testable import BlueZSimulator
@testable import SimulatedRadio

@Suite("What the daemon has on the radio") @BlueZSimulatorActor
struct MediumControllerTests {
    private final class Daemon: ControllerDelegate {
        func heard(_ report: AirReport) {}
        func powerChanged(_ powered: Bool) {}
        func centralConnected(_ central: CentralID, address: BluetoothAddress, mtu: Int) {}
        func centralDisconnected(_ central: CentralID, reason: DisconnectReason) {}
        func leftoverLost(_ link: LinkInfo, reason: DisconnectReason) {}
        func centralRead(
            _ central: CentralID, _ characteristic: ServedCharacteristicID, offset: Int,
            answer: @escaping @BlueZSimulatorActor (Result<[UInt8], ATTError>) -> Void
        ) {}
        func centralWrote(
            _ central: CentralID, _ characteristic: ServedCharacteristicID, _ value: [UInt8], offset: Int,
            answer: @escaping @BlueZSimulatorActor (ATTError?) -> Void
        ) {}
        func centralSubscribed(_ central: CentralID, _ characteristic: ServedCharacteristicID) {}
        func centralUnsubscribed(_ central: CentralID, _ characteristic: ServedCharacteristicID) {}
    }

    private static let request = AdvertisementRequest(localName: "host", serviceUUIDs: [0x180A])

    private let radio = SimulatedMedium(clock: ManualClock()).addAdapter()
    private let daemon = Daemon()

    private var advertisements: Int { radio.core.turn { $0.sessions.count } }

    private func controller() -> MediumController {
        let controller = MediumController(radio: radio)
        #expect(controller.attach(daemon).isEmpty)
        return controller
    }

    /// An application that says at once, and again, that its advertisement changed.
    @Test func anInstanceIsOnTheAirOnceHoweverOftenItIsStarted() async throws {
        let controller = controller()
        try await controller.startAdvertising(1, Self.request)
        let starts = (0..<8).map { _ in Task { try await controller.startAdvertising(1, Self.request) } }
        for start in starts { try await start.value }
        #expect(advertisements == 1)
        await controller.stopAdvertising([1])
        #expect(advertisements == 0)
        controller.detach(.stopped)
    }

    /// A central has come and pauses them all; while that is under way an application refreshes one.
    @Test func whatIsStartedBehindAPauseIsNotPaused() async throws {
        let controller = controller()
        for instance: UInt8 in 1...2 { try await controller.startAdvertising(instance, Self.request) }
        let pause = Task { await controller.stopAdvertising([1, 2]) }
        let start = Task { try await controller.startAdvertising(2, Self.request) }
        await pause.value
        try await start.value
        #expect(advertisements == 1)
        controller.detach(.stopped)
    }

    @Test func aScanThatIsStoppedBeforeItRunsDoesNotRun() async throws {
        let controller = controller()
        let scanning = controller.startScanning()
        controller.stopScanning()
        await scanning.value
        #expect(radio.core.turn { $0.adapters[radio.id]?.scans.count } == 0)
        controller.detach(.stopped)
    }

    @Test func anApplicationThatIsRefusedIsNotKept() async throws {
        let controller = controller()
        let services = [LocalService](repeating: LocalService(0x180F, characteristics: []), count: 65)
        await #expect(throws: BluetoothError.self) { try await controller.serve(1, services) }
        #expect(controller.applications.isEmpty)
        controller.detach(.stopped)
    }
}
