// SPDX-License-Identifier: MIT

import BluetoothLE

/// Counts what happens, so that a manual clock can tell when nothing happens any more.
final class Activity: Sendable {
    private let counter = Locked<UInt64>(0)

    var count: UInt64 { counter.withLock { $0 } }

    func note() { counter.withLock { $0 &+= 1 } }
}
