// SPDX-License-Identifier: MIT

import NearbyDiscoveryKit

/// Waits until a radio can be used.
struct RadioWait {
    let radio: any Radio
    let policy: UnavailablePolicy
    let context: CommandContext

    /// - Throws: why the radio cannot be used, if the policy's time is up or the task was cancelled.
    func untilReady() async throws(BluetoothError) {
        let statuses = radio.adapterStatuses()
        let last = Guarded<AdapterStatus?>(nil)
        let watching = Task(executorPreference: context.loop) { [context] in
            for await status in statuses {
                if status.state == .poweredOn { return true }
                last.withLock { $0 = status }
                context.console.status("Waiting for Bluetooth…")
                if let reason = status.reason { context.console.waiting(for: reason, isWorthKnowing: false) }
            }
            return false
        }
        var cancelTimer: (@Sendable () -> Void)?
        if case .fail(let patience) = policy {
            cancelTimer = context.loop.schedule(after: patience) { watching.cancel() }
        }
        let isReady = await withTaskCancellationHandler {
            await watching.value
        } onCancel: {
            watching.cancel()
        }
        cancelTimer?()
        if isReady { return }
        throw last.withLock { $0?.reason } ?? .noAnswer
    }
}

extension BluetoothError {
    /// The time was up before the service has said anything.
    static let noAnswer = BluetoothError(
        .serviceUnavailable,
        "the Bluetooth service does not answer",
        advice: "See `systemctl status bluetooth`; if it stays so, `sudo systemctl restart bluetooth`."
    )
}
