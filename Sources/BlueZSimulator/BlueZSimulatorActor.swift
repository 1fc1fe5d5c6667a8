// SPDX-License-Identifier: MIT

package import DBus

/// Where every simulator of the process lives: one thread, as bluetoothd has one.
///
/// The D-Bus connections of the simulators are on the same loop, so that what a handler does to them happens at once
/// and in order, and nothing here needs a lock.
@globalActor
public actor BlueZSimulatorActor {
    public static let shared = BlueZSimulatorActor()

    package nonisolated static let loop = EventLoop(name: "bluez-sim")

    public nonisolated var unownedExecutor: UnownedSerialExecutor { Self.loop.asUnownedSerialExecutor() }

    /// Runs a closure that belongs here, from a callback that the loop makes; traps anywhere else.
    ///
    /// The standard library has this for the main actor only. The cast takes the actor off the closure's type, which
    /// is sound because the check before it has proven that this is the actor's thread.
    package nonisolated static func assumeIsolated<Result: Sendable>(
        _ body: @BlueZSimulatorActor () throws -> Result
    ) rethrows -> Result {
        loop.checkIsolated()
        return try withoutActuallyEscaping(body) { escaping in
            try unsafeBitCast(escaping, to: (() throws -> Result).self)()
        }
    }
}
