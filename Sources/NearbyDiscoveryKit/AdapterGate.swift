// SPDX-License-Identifier: MIT

import BluetoothLE

/// Waits for an adapter that can be used.
struct AdapterGate {
    let radio: any RadioAdapter
    let policy: UnavailablePolicy
    /// Told each time the reason to wait changes.
    let onUnavailable: @Sendable (BluetoothError) -> Void

    /// Returns once the adapter is powered on.
    ///
    /// - Throws: the reason, when the policy's time is up; `cancelled`.
    func open() async throws(NearbyError) {
        let reason = Locked<BluetoothError?>(nil)
        let isOpen: Bool = await withTaskGroup(of: Bool?.self) { group in
            group.addTask {
                for await status in radio.adapterStatuses() {
                    if status.state == .poweredOn { return true }
                    guard let error = status.error, error != reason.withLock({ $0 }) else { continue }
                    reason.withLock { $0 = error }
                    onUnavailable(error)
                }
                return Task.isCancelled ? nil : false
            }
            if case .fail(let grace) = policy {
                group.addTask { [clock = radio.clock] in
                    do { try await clock.sleep(for: grace.bounded) } catch { return nil }
                    return false
                }
            }
            var answer = false
            // The first real answer counts; a nil is a task that was cancelled.
            for await result in group {
                guard let result else { continue }
                answer = result
                break
            }
            group.cancelAll()
            return answer
        }
        if isOpen { return }
        if Task.isCancelled { throw .cancelled }
        throw NearbyError(
            reason.withLock { $0 }
                ?? BluetoothError(
                    .serviceUnavailable,
                    "the Bluetooth adapter did not say whether it can be used",
                    advice: "Is bluetoothd running? See `systemctl status bluetooth`."
                )
        )
    }
}

extension BluetoothError {
    /// The radio has neither started a scan nor said why not.
    static let scanHangs = BluetoothError(
        .timedOut,
        "the Bluetooth service did not start a scan in time",
        advice: "If it stays so, restart it: `sudo systemctl restart bluetooth`."
    )

    /// Whether waiting for the adapter may help.
    var isUnavailability: Bool {
        switch code {
        case .adapterNotFound, .poweredOff, .unauthorized, .serviceUnavailable, .resetting, .timedOut: true
        default: false
        }
    }
}
