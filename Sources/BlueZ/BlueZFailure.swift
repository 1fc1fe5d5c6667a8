// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// What was being done when a D-Bus error came: the same error name means different things.
enum Operation: Sendable, Hashable {
    /// Reaching the bus and bluetoothd.
    case reach
    case discover
    case connect
    /// Reading, writing, subscribing at a peer.
    case attribute
    case serve
    case advertise
}

/// From D-Bus errors to the contract's.
enum BlueZFailure {
    static func error(_ error: DBusError, during operation: Operation, subject: String? = nil) -> BluetoothError {
        func make(_ code: BluetoothError.Code, _ message: String, _ advice: String? = nil) -> BluetoothError {
            BluetoothError(code, message, advice: advice, subject: subject, cause: error.description)
        }
        switch error.code {
        case .noBus:
            return make(
                .serviceUnavailable, "the D-Bus system bus cannot be reached",
                "See whether D-Bus runs (`systemctl status dbus`), or name another bus.")
        case .accessDenied: return unauthorized(cause: error.description, subject: subject)
        case .disconnected, .closed:
            return make(
                .resetting, "the connection to the D-Bus system bus was lost",
                "If it does not come back, see whether D-Bus runs (`systemctl status dbus`).")
        case .noReply: return make(.resetting, "the Bluetooth service went away", seeItsState)
        case .cancelled: return .cancelled
        case .timedOut:
            var failure = noAnswer
            (failure.subject, failure.cause) = (subject, error.description)
            return failure
        case .limitExceeded:
            return make(
                .limitExceeded, "the Bluetooth service is given, or gives, more than can be handled",
                "If it stays so, restart it: `sudo systemctl restart bluetooth`.")
        case .invalidArgument: return make(.invalidArgument, error.message, error.advice)
        default: break
        }
        guard let name = error.name else { return make(.internalFailure, "the Bluetooth service failed", seeItsLog) }
        if error.isServiceUnknown || isActivationFailure(name) { return serviceUnavailable(cause: error.description) }
        switch name {
        case ErrorName.unknownObject, ErrorName.unknownMethod, ErrorName.unknownInterface:
            return vanished(during: operation, make)
        case BlueZError.notReady:
            return make(.poweredOff, "the Bluetooth adapter is off", "Run `bluetoothctl power on`.")
        case BlueZError.inProgress: return make(.busy, "another operation is in the way", "Try again in a moment.")
        case BlueZError.noSuchAdapter: return make(.adapterNotFound, "the Bluetooth adapter is gone")
        case BlueZError.notConnected: return make(.notConnected, "there is no link to the device")
        default: break
        }
        switch operation {
        case .connect: return connect(name, error.message, make)
        case .attribute: return attribute(name, error, subject)
        case .advertise:
            if let refused = advertise(name, error.message, make) { return refused }
        default: break
        }
        switch name {
        case BlueZError.notSupported: return make(.notSupported, "the Bluetooth adapter or service cannot do this")
        case BlueZError.notAuthorized, BlueZError.notPermitted:
            return make(.unauthorized, "the Bluetooth service does not permit this")
        case BlueZError.invalidArguments: return make(.invalidArgument, "the Bluetooth service refused an argument")
        default: return make(.internalFailure, "the Bluetooth service failed", seeItsLog)
        }
    }

    static let seeItsLog =
        "See what `journalctl -u bluetooth` says, and restart it: `sudo systemctl restart bluetooth`."

    static let seeItsState = "If it does not come back, see `systemctl status bluetooth`."

    static let noAnswer = BluetoothError(
        .timedOut, "the Bluetooth service did not answer in time",
        advice: "If it stays so, restart it: `sudo systemctl restart bluetooth`.")

    /// `StartDiscovery` answers `InProgress`, and nobody is heard.
    static let scanRefused = BluetoothError(
        .serviceUnavailable,
        "the Bluetooth service does not begin to scan: it says that it does already, and hears nobody",
        advice: "If it stays so, switch the adapter off and on: `bluetoothctl power off`, `bluetoothctl power on`.")

    /// BlueZ's policy lets everybody in; some distributions restrict it to a group or to whoever sits at the machine.
    static func unauthorized(cause: String?, subject: String? = nil) -> BluetoothError {
        BluetoothError(
            .unauthorized,
            "this user may not use Bluetooth",
            advice: "Join the group `bluetooth` (`sudo usermod -aG bluetooth $USER`, then log in again), or run from a "
                + "session at the machine; the rule is in the D-Bus policy bluetooth.conf.",
            subject: subject,
            cause: cause
        )
    }

    static func serviceUnavailable(cause: String?) -> BluetoothError {
        BluetoothError(
            .serviceUnavailable,
            "the Bluetooth service is not running",
            advice: "Run `sudo systemctl start bluetooth`; if there is no such service, install the package `bluez`.",
            cause: cause
        )
    }

    /// The bus tried to start bluetoothd and could not.
    private static func isActivationFailure(_ name: String) -> Bool {
        name.hasPrefix("org.freedesktop.systemd1.") || name.hasPrefix("org.freedesktop.DBus.Error.Spawn.")
    }

    private static func vanished(
        during operation: Operation,
        _ make: (BluetoothError.Code, String, String?) -> BluetoothError
    ) -> BluetoothError {
        switch operation {
        case .connect: make(.peerNotFound, "the Bluetooth service no longer knows this device", "Scan again.")
        case .attribute: make(.attributeNotFound, "the characteristic is gone", "Discover the services again.")
        case .serve, .advertise:
            make(.notSupported, "this adapter cannot be a Bluetooth LE peripheral", "Use another adapter.")
        case .discover, .reach: make(.adapterNotFound, "the Bluetooth adapter is gone", nil)
        }
    }

    /// Texts of src/error.h. On LE, too, some begin with `br-`; `le-connection-abort-by-local` is nearly any failure.
    private static func connect(
        _ name: String,
        _ text: String,
        _ make: (BluetoothError.Code, String, String?) -> BluetoothError
    ) -> BluetoothError {
        if text.hasSuffix("adapter-not-powered") || text.hasSuffix("Host is down") {
            return make(.poweredOff, "the Bluetooth adapter is off", "Run `bluetoothctl power on`.")
        }
        if text.hasSuffix("connection-busy") { return make(.busy, "the device is being connected to already", nil) }
        if text.hasSuffix("connection-timeout") || text.hasSuffix("page-timeout") {
            return make(.connectionFailed, "the device did not answer", "Move closer, and scan again.")
        }
        if text.contains("concurrent") && text.contains("limit") {
            return make(.limitExceeded, "the adapter has no room for another link", "Disconnect a device.")
        }
        if name == BlueZError.notSupported || text.hasSuffix("not-supported") {
            return make(.notSupported, "the adapter cannot connect to this device", nil)
        }
        return make(.connectionFailed, "no link came about", nil)
    }

    /// Rule 13.
    private static func advertise(
        _ name: String,
        _ text: String,
        _ make: (BluetoothError.Code, String, String?) -> BluetoothError
    ) -> BluetoothError? {
        switch name {
        case BlueZError.notPermitted:
            make(
                .advertisingFailed, "the adapter has no room for another advertisement",
                "End another program that advertises, such as a second host.")
        case BlueZError.alreadyExists:
            make(.advertisingFailed, "the advertisement is registered already", "Try again in a moment.")
        case BlueZError.failed, BlueZError.invalidArguments, BlueZError.notSupported:
            make(
                .advertisingFailed, "the adapter refused the advertisement",
                text.contains("parse")
                    ? "Advertise less: a shorter name, no service data."
                    : "Disconnect other devices, or restart it: `sudo systemctl restart bluetooth`.")
        default: nil
        }
    }
}
