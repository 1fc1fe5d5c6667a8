// SPDX-License-Identifier: MIT

import BluetoothLE
import Observation

/// What anybody may read of a session at any time, from any thread.
///
/// Reads are seen by `withObservationTracking`, and so by SwiftUI. One core writes, one change after another.
final class SessionBoard: Observable, Sendable {
    struct Values: Sendable {
        var state = SessionState.idle
        var isCommandReady = false
        var isDeviceInfoReady = false
        var scanResults: [ScanResult] = []
        var scanInterruption: BluetoothError?
        var connectInterruption: BluetoothError?
        var facts = DeviceFacts()
        var services: [RemoteService] = []
        var device: ScanResult?
        var codecName = ""
    }

    /// Each change of `connectInterruption`. An observer is told before the change, and in another thread it may look too
    /// early.
    let connectInterruptions = Broadcast<BluetoothError?>(keeping: 1, readers: Limits.streams)
    private let values = Locked(Values())
    private let registrar = ObservationRegistrar()

    func read<Value>(
        _ path: any KeyPath<Values, Value> & Sendable,
        as property: any KeyPath<SessionBoard, Value> & Sendable
    ) -> Value {
        registrar.access(self, keyPath: property)
        return values.withLock { $0[keyPath: path] }
    }

    /// Outside of the lock: an observer may read at once.
    ///
    /// - Returns: Whether it was a change.
    @discardableResult
    func write<Value: Equatable>(
        _ value: Value,
        _ path: any WritableKeyPath<Values, Value> & Sendable,
        as property: any KeyPath<SessionBoard, Value> & Sendable
    ) -> Bool {
        guard values.withLock({ $0[keyPath: path] }) != value else { return false }
        registrar.willSet(self, keyPath: property)
        values.withLock { $0[keyPath: path] = value }
        registrar.didSet(self, keyPath: property)
        return true
    }

    var state: SessionState {
        get { read(\.state, as: \.state) }
        set { write(newValue, \.state, as: \.state) }
    }

    var isCommandReady: Bool {
        get { read(\.isCommandReady, as: \.isCommandReady) }
        set { write(newValue, \.isCommandReady, as: \.isCommandReady) }
    }

    var isDeviceInfoReady: Bool {
        get { read(\.isDeviceInfoReady, as: \.isDeviceInfoReady) }
        set { write(newValue, \.isDeviceInfoReady, as: \.isDeviceInfoReady) }
    }

    var scanResults: [ScanResult] {
        get { read(\.scanResults, as: \.scanResults) }
        set { write(newValue, \.scanResults, as: \.scanResults) }
    }

    var scanInterruption: BluetoothError? {
        get { read(\.scanInterruption, as: \.scanInterruption) }
        set { write(newValue, \.scanInterruption, as: \.scanInterruption) }
    }

    var connectInterruption: BluetoothError? {
        get { read(\.connectInterruption, as: \.connectInterruption) }
        set {
            guard write(newValue, \.connectInterruption, as: \.connectInterruption) else { return }
            connectInterruptions.send(newValue)
        }
    }

    var facts: DeviceFacts {
        get { read(\.facts, as: \.facts) }
        set { write(newValue, \.facts, as: \.facts) }
    }

    var services: [RemoteService] {
        get { read(\.services, as: \.services) }
        set { write(newValue, \.services, as: \.services) }
    }

    var device: ScanResult? {
        get { read(\.device, as: \.device) }
        set { write(newValue, \.device, as: \.device) }
    }

    var codecName: String {
        get { read(\.codecName, as: \.codecName) }
        set { write(newValue, \.codecName, as: \.codecName) }
    }
}
