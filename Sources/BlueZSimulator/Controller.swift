// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import SimulatedRadio

/// How a daemon ends.
enum DaemonEnd {
    /// By SIGTERM, or because its bus is gone: it takes everything down, and the adapters too.
    case stopped
    /// By SIGKILL, or a crash.
    case killed
}

/// What the radio tells the daemon.
@BlueZSimulatorActor
protocol ControllerDelegate: AnyObject {
    func heard(_ report: AirReport)
    func powerChanged(_ powered: Bool)
    func centralConnected(_ central: CentralID, address: BluetoothAddress, mtu: Int)
    func centralDisconnected(_ central: CentralID, reason: DisconnectReason)
    /// A link that was up when the daemon began is down.
    func leftoverLost(_ link: LinkInfo, reason: DisconnectReason)
    func centralRead(
        _ central: CentralID, _ characteristic: ServedCharacteristicID, offset: Int,
        answer: @escaping @BlueZSimulatorActor (Result<[UInt8], ATTError>) -> Void)
    func centralWrote(
        _ central: CentralID, _ characteristic: ServedCharacteristicID, _ value: [UInt8], offset: Int,
        answer: @escaping @BlueZSimulatorActor (ATTError?) -> Void)
    func centralSubscribed(_ central: CentralID, _ characteristic: ServedCharacteristicID)
    func centralUnsubscribed(_ central: CentralID, _ characteristic: ServedCharacteristicID)
}

/// One report of one device, as the kernel hands it to bluetoothd.
struct AirReport: Sendable, Hashable {
    let address: BluetoothAddress
    let advertisement: Advertisement
    /// dBm; 127: not available.
    let rssi: Int
    /// The Flags element; nil: the advertisement has none.
    var flags: UInt8?
}

/// A central that is connected to us, for one link.
struct CentralID: Sendable, Hashable {
    let link: UInt64
}

/// A characteristic of ours, good for as long as its application is registered.
struct ServedCharacteristicID: Sendable, Hashable {
    let application: UInt64
    let position: LocalCharacteristicID
}

/// Time on the medium's clock.
struct Timers: Sendable {
    let clock: any MonotonicClock

    /// Runs a closure after a time, unless the task is cancelled before.
    func after(_ delay: Duration, _ body: @escaping @BlueZSimulatorActor () -> Void) -> Task<Void, Never> {
        // The deadline is taken now: a manual clock may be advanced before the task has begun to sleep.
        let deadline = clock.now.advanced(by: delay)
        let clock = clock
        return Task { @BlueZSimulatorActor in
            try? await clock.sleep(until: deadline, tolerance: nil)
            if !Task.isCancelled { body() }
        }
    }
}
