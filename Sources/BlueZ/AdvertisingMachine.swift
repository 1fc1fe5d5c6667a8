// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// What of a request is advertised.
struct AdvertisingForm: Sendable, Hashable {
    var interval: Bool
    var name: Bool
}

/// The ladder by which an advertisement is registered (rules 12, 13): as asked, the same once more, without the
/// interval, without the name, and then an error.
struct AdvertisingMachine: Sendable {
    /// What a refusal says about the next step.
    enum Refusal: Sendable, Hashable {
        /// The form may be the reason.
        case form
        /// No room. Less data does not help, but the room may be one that we just gave back.
        case noRoom
        /// Our path is still registered.
        case exists
        /// The adapter, bluetoothd or the permission is missing: nothing to try until that changes.
        case hopeless
    }

    enum Step: Sendable, Hashable {
        case register(AdvertisingForm)
        /// Take the old registration back, then register.
        case unregisterThenRegister(AdvertisingForm)
        /// Say that a property of the registered advertisement has changed: bluetoothd hands it to the kernel again.
        case refresh
        case giveUp
    }

    /// Nothing else is tried before this succeeds or fails.
    private let forms: [AdvertisingForm]
    private var rung = 0
    private var retried = false
    private(set) var isRegistered = false
    /// Whether a registration has succeeded while another device was connected: this controller can do both.
    private var worksBesideLinks = false

    init(interval: Bool, name: Bool) {
        var forms = [AdvertisingForm(interval: interval, name: name)]
        if interval { forms.append(AdvertisingForm(interval: false, name: name)) }
        if name { forms.append(AdvertisingForm(interval: false, name: false)) }
        self.forms = forms
    }

    var form: AdvertisingForm { forms[rung] }

    /// Whether something had to be left out.
    var isDegraded: Bool { rung > 0 }

    /// Registers: the form that worked last comes first.
    mutating func begin() -> Step {
        retried = false
        let registered = isRegistered
        isRegistered = false
        return registered ? .unregisterThenRegister(form) : .register(form)
    }

    /// Advertises again what is registered, since a connection may have ended it. A refresh is one signal, where a
    /// registration is eight messages and a gap on the air; but bluetoothd tells nobody when the kernel refuses one.
    ///
    /// - Parameters:
    ///   - besideLinks: Whether a device is connected, which is why a kernel would refuse.
    ///   - survivesRefusal: Whether this bluetoothd survives that.
    mutating func again(besideLinks: Bool, survivesRefusal: Bool) -> Step {
        guard isRegistered, survivesRefusal || !besideLinks || worksBesideLinks else { return begin() }
        return .refresh
    }

    /// Everything may be different: the adapter or bluetoothd is another.
    mutating func reset() {
        rung = 0
        retried = false
        isRegistered = false
        worksBesideLinks = false
    }

    /// bluetoothd took the registration back.
    mutating func released() { isRegistered = false }

    mutating func succeeded(besideLinks: Bool = false) {
        isRegistered = true
        if besideLinks { worksBesideLinks = true }
    }

    mutating func failed(_ refusal: Refusal) -> Step {
        isRegistered = false
        switch refusal {
        case .hopeless:
            return .giveUp
        case .exists, .noRoom:
            guard !retried else { return .giveUp }
            retried = true
            return refusal == .exists ? .unregisterThenRegister(form) : .register(form)
        case .form:
            if !retried {
                retried = true
                return .register(form)
            }
            guard rung + 1 < forms.count else {
                rung = 0
                return .giveUp
            }
            rung += 1
            return .register(form)
        }
    }

    static func refusal(_ error: DBusError) -> Refusal {
        switch error.name {
        case BlueZError.notPermitted: .noRoom
        case BlueZError.alreadyExists: .exists
        case BlueZError.failed, BlueZError.invalidArguments, BlueZError.notSupported, BlueZError.inProgress: .form
        default: .hopeless
        }
    }
}
