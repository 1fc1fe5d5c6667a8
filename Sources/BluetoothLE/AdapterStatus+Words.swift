// SPDX-License-Identifier: MIT

extension AdapterStatus {
    /// What the state means, in one sentence without a full stop: the radio's own words where it gave a reason.
    public var message: String { reason?.message ?? state.message }

    /// What the user can do, in whole sentences: the radio's own advice where it gave a reason. `nil` while the adapter
    /// is ready.
    public var advice: String? { state == .poweredOn ? nil : reason?.advice ?? state.advice }

    /// Why the adapter cannot be used; `nil` if it can, or if the radio is still asking.
    package var error: BluetoothError? {
        if let reason { return reason }
        let code: BluetoothError.Code
        switch state {
        case .poweredOn, .unknown: return nil
        case .resetting: code = .resetting
        case .unsupported: code = .adapterNotFound
        case .unauthorized: code = .unauthorized
        case .poweredOff: code = .poweredOff
        }
        return BluetoothError(code, state.message, advice: state.advice, subject: adapter)
    }
}

extension AdapterState {
    /// For a state that comes without a reason.
    public var message: String {
        switch self {
        case .unknown: "the state of the Bluetooth adapter is not known yet"
        case .resetting: "the Bluetooth service restarts"
        case .unsupported: "there is no Bluetooth adapter that can be used"
        case .unauthorized: "this user may not use Bluetooth"
        case .poweredOff: "the Bluetooth adapter is off"
        case .poweredOn: "Bluetooth is ready"
        }
    }

    /// For a state that comes without a reason; `nil` for `poweredOn`.
    public var advice: String? {
        switch self {
        case .unknown: "Wait a moment; the answer comes by itself."
        case .resetting: "Wait until it is back; everything goes on by itself then."
        case .unsupported: "Plug in an adapter that does Bluetooth LE."
        case .unauthorized: "Ask the system's administrator for permission to use Bluetooth."
        case .poweredOff: "Switch Bluetooth on."
        case .poweredOn: nil
        }
    }
}
