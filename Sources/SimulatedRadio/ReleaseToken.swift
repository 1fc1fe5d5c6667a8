// SPDX-License-Identifier: MIT

import BluetoothLE

/// Does something once: when told to, or when released.
package final class ReleaseToken: Sendable {
    private let action: Locked<(@Sendable () -> Void)?>

    init(_ action: @escaping @Sendable () -> Void) {
        self.action = Locked(action)
    }

    deinit { release() }

    package func release() {
        let action = action.withLock { action in
            defer { action = nil }
            return action
        }
        action?()
    }

    package func cancel() { release() }
}

/// An adapter's place in the medium, given up with the last radio, scan, link or session that uses it.
final class AdapterHandle: Sendable {
    let core: MediumCore
    let id: AdapterID

    init(core: MediumCore, id: AdapterID) {
        self.core = core
        self.id = id
    }

    deinit {
        let id = id
        core.turn { $0.removeAdapter(id) }
    }
}
