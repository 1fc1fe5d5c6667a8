// SPDX-License-Identifier: MIT

import BluetoothLE

/// A BlueZ simulator on a bus, and the bus if nobody named one.
final class Simulation: Sendable {
    struct Adapter: Sendable {
        var name: String
        var address: BluetoothAddress
    }

    let bus: String
    let adapters: [Adapter]

    private init(bus: String, adapters: [Adapter]) {
        self.bus = bus
        self.adapters = adapters
    }

    /// - Parameter bus: The bus to own `org.bluez` on; `nil`: a private one, which lives as long as the simulation.
    static func start(bus: String?, adapters: Int) async throws(Failure) -> Simulation {
        throw .internal("the simulator is not built in yet")
    }

    /// Takes the simulator off the bus, and the bus down if it is ours.
    func stop() async {}
}
