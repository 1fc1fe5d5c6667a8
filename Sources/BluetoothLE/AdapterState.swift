// SPDX-License-Identifier: MIT

/// What the local Bluetooth adapter can do at the moment.
public enum AdapterState: String, Sendable, Hashable, CaseIterable {
    /// Not known yet: the radio is still asking.
    case unknown
    /// The Bluetooth service went away or restarts; it is expected back.
    case resetting
    /// There is no adapter, or none that does Bluetooth LE in the role asked for.
    case unsupported
    /// This user may not use Bluetooth.
    case unauthorized
    /// There is an adapter, and it is off (by software, or blocked by rfkill).
    case poweredOff
    /// Ready.
    case poweredOn
}

/// An adapter's state with what a person needs to know about it.
public struct AdapterStatus: Sendable, Hashable {
    public var state: AdapterState
    /// The adapter's name on this system, such as `hci0`; `nil` while there is none.
    public var adapter: String?
    public var address: BluetoothAddress?
    /// Why the state is not `poweredOn`, as the error an operation would end with.
    public var reason: BluetoothError?

    public init(
        _ state: AdapterState,
        adapter: String? = nil,
        address: BluetoothAddress? = nil,
        reason: BluetoothError? = nil
    ) {
        self.state = state
        self.adapter = adapter
        self.address = address
        self.reason = reason
    }
}
