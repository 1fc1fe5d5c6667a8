// SPDX-License-Identifier: MIT

import BlueZSimulator
import BluetoothLE
import DBus
import SimulatedRadio

/// A BlueZ simulator on a bus, and the bus if nobody named one.
final class Simulation: Sendable {
    struct Adapter: Sendable {
        var name: String
        var address: BluetoothAddress
    }

    let bus: String
    let adapters: [Adapter]
    private let privateBus: Guarded<PrivateBus?>
    private let simulator: Task<DBusError?, Never>

    private init(
        bus: String,
        adapters: [Adapter],
        privateBus: PrivateBus?,
        simulator: Task<DBusError?, Never>
    ) {
        self.bus = bus
        self.adapters = adapters
        self.privateBus = Guarded(privateBus)
        self.simulator = simulator
    }

    /// - Parameters:
    ///   - bus: The bus to own `org.bluez` on; `nil`: a private one, which lives as long as the simulation.
    ///   - hasDevice: Whether there is a device to talk to, besides the adapters.
    static func start(bus: String?, adapters count: Int, hasDevice: Bool = false) async throws(Failure) -> Simulation {
        var privateBus: PrivateBus?
        do throws(DBusError) {
            if bus == nil { privateBus = try await PrivateBus() }
        } catch {
            throw Failure(error)
        }
        let address = bus ?? privateBus?.address ?? "system"
        let (ready, isReady) = AsyncStream.makeStream(of: [Adapter].self)
        let device = Guarded<SimulatedUART?>(nil)
        let simulator = Task { () -> DBusError? in
            defer { isReady.finish() }
            do throws(DBusError) {
                try await BlueZSimulator.run(on: BusAddress(argument: address), adapters: count) { simulator in
                    if hasDevice, let uart = try? await SimulatedUART(in: simulator.medium) {
                        device.withLock { $0 = uart }
                    }
                    let adapters = simulator.radios.map { Adapter(name: $0.key, address: $0.value.address) }
                    isReady.yield(adapters.sorted { $0.name < $1.name })
                }
                await device.withLock { $0 }?.stop()
                return nil
            } catch {
                return error
            }
        }
        for await adapters in ready {
            return Simulation(bus: address, adapters: adapters, privateBus: privateBus, simulator: simulator)
        }
        // It has ended without ever being ready, or we were told to stop.
        simulator.cancel()
        let error = await simulator.value
        privateBus?.stop()
        throw error.map(Failure.init) ?? .internal("the simulator ended before it was ready")
    }

    /// Suspends until the simulator has ended; why, if not because of `stop`.
    func ended() async -> Failure? { await simulator.value.map(Failure.init) }

    /// Makes `ended` return soon.
    func cancel() { simulator.cancel() }

    /// Takes the simulator off the bus, and the bus down if it is ours.
    func stop() async {
        simulator.cancel()
        _ = await simulator.value
        privateBus.withLock { bus in
            bus?.stop()
            bus = nil
        }
    }
}

extension Failure {
    fileprivate init(_ error: DBusError) {
        let exitCode: ExitCode =
            switch error.code {
            case .accessDenied: .noPermission
            case .invalidArgument: .usage
            case .cancelled: .interrupted
            default: .serviceUnavailable
            }
        self.init(exitCode, code: "\(error.code)", error.message, advice: error.advice, detail: error.name)
    }
}
