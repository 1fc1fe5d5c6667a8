// SPDX-License-Identifier: MIT

internal import BluetoothLE
internal import DBus

/// What we follow of an `org.bluez.Adapter1` object.
struct Adapter1: Sendable, Hashable {
    let path: ObjectPath
    var address: BluetoothAddress?
    var powered = false
    /// Whether anybody discovers; `nil` where bluetoothd does not say.
    var discovering: Bool?
    /// BlueZ 5.66 and later: `on`, `off`, `off-enabling`, `on-disabling`, `off-blocked`.
    var powerState: String?
    /// `central`, `peripheral`, `central-peripheral`; `nil` where bluetoothd does not say.
    var roles: Set<String>?
    /// bluetoothd's own, from `Modalias`; `nil` where a configuration names another product (main.conf, `DeviceID`).
    var bluezVersion: BlueZVersion?
    /// Whether the object has `org.bluez.GattManager1` and `org.bluez.LEAdvertisingManager1`.
    var servesGATT = false
    var advertises = false

    init(path: ObjectPath) { self.path = path }

    /// Such as `hci0`.
    var name: String { path.lastElement }

    /// Adapters without LE have neither a role nor the interfaces for it.
    var hasLE: Bool { roles.map { !$0.isEmpty } ?? true || advertises || servesGATT }

    /// Whether the controller can be a central while it advertises; assumed where bluetoothd does not say.
    var isCentralWhileAdvertising: Bool { roles.map { $0.contains("central-peripheral") } ?? true }

    /// Whether a discovery filter may name services. In 5.87 it takes bluetoothd down at the first report that has any,
    /// for every app and every device of the machine (bluez/bluez#2282): there we look at each report ourselves, and
    /// also where nothing tells the version.
    var filtersByService: Bool { bluezVersion.map { $0 != BlueZVersion(major: 5, minor: 87) } ?? false }

    /// Whether bluetoothd writes past the end of the buffer in which it gathers, for 10 ms, what is notified to a central that
    /// takes multiple-notification PDUs (another BlueZ, Android): before 5.60 (src/shared/gatt-server.c; mended by commit
    /// 297fa5cb3). Not assumed where nothing tells the version.
    var overflowsWithNotifications: Bool { bluezVersion.map { $0 < BlueZVersion(major: 5, minor: 60) } ?? false }

    /// Whether a characteristic has the property `MTU`; assumed where nothing tells the version.
    var tellsMTU: Bool { bluezVersion.map { $0 >= BlueZVersion(major: 5, minor: 62) } ?? true }

    /// Whether bluetoothd survives that the kernel refuses an advertisement which it gives again. From 5.56 to 5.74 it
    /// then answers a call that nobody made, and libdbus ends it (BlueZ commit 6b5447583, in 5.75).
    var survivesRefusedRefresh: Bool {
        bluezVersion.map { $0 < BlueZVersion(major: 5, minor: 56) || $0 >= BlueZVersion(major: 5, minor: 75) } ?? false
    }

    mutating func apply(_ changed: [String: DBusValue], invalidated: [String] = []) {
        for (name, value) in changed {
            switch name {
            case "Address":
                address = value.asString.flatMap { BluetoothAddress($0, kind: address?.kind ?? .public) }
            case "AddressType":
                let kind: BluetoothAddress.Kind = value.asString == "random" ? .random : .public
                if let raw = address?.rawValue { address = BluetoothAddress(rawValue: raw, kind: kind) }
            case "Powered": powered = value.asBool ?? powered
            case "Discovering": discovering = value.asBool ?? discovering
            case "PowerState": powerState = value.asString?.clipped(toBytes: Limits.wordBytes)
            case "Roles":
                roles = value.asStrings.map { roles in
                    Set(roles.prefix(8).map { $0.clipped(toBytes: Limits.wordBytes) })
                }
            case "Modalias": bluezVersion = value.asString.flatMap(BlueZVersion.init(modalias:))
            default: break
            }
        }
        for name in invalidated {
            switch name {
            case "PowerState": powerState = nil
            case "Roles": roles = nil
            default: break
            }
        }
    }
}

/// bluetoothd's version.
struct BlueZVersion: Sendable, Hashable, Comparable {
    var major: Int
    var minor: Int

    init(major: Int, minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// `Adapter1.Modalias` is `usb:v1D6Bp0246dMMmm` (BlueZ src/main.c, init_defaults), hexadecimal throughout.
    init?(modalias: String) {
        let prefix = "usb:v1D6Bp0246d"
        let digits = modalias.dropFirst(prefix.count)
        guard modalias.hasPrefix(prefix), digits.count == 4, let number = UInt16(digits, radix: 16) else { return nil }
        self.init(major: Int(number >> 8), minor: Int(number & 0xFF))
    }

    static func < (left: Self, right: Self) -> Bool { (left.major, left.minor) < (right.major, right.minor) }
}

/// Which adapter a radio uses (rule 26).
struct AdapterChoice: Sendable, Hashable {
    /// By name or address, as the user wrote it; `nil`: the first powered one with LE.
    var wanted: String?

    /// The adapter to use now: `current` as long as it will do, so that a second adapter that appears changes nothing.
    func pick(from adapters: some Collection<Adapter1>, current: ObjectPath?) -> Adapter1? {
        if let wanted {
            let address = BluetoothAddress(wanted)?.rawValue
            return adapters.first { $0.name == wanted || (address != nil && $0.address?.rawValue == address) }
        }
        let usable = adapters.filter(\.hasLE).sorted { $0.path < $1.path }
        let powered = usable.filter(\.powered)
        return powered.first { $0.path == current } ?? powered.first
            ?? usable.first { $0.path == current } ?? usable.first
    }

    /// The error that says why there is nothing to pick.
    func absence(among adapters: some Collection<Adapter1>) -> BluetoothError {
        if let wanted {
            let names = adapters.map(\.name).sorted().joined(separator: ", ")
            return BluetoothError(
                .adapterNotFound,
                "there is no Bluetooth adapter \(wanted)",
                advice: names.isEmpty
                    ? "Plug the adapter in, and see what `bluetoothctl list` shows."
                    : "The adapters here are: \(names).",
                subject: wanted
            )
        }
        guard adapters.isEmpty else {
            return BluetoothError(
                .adapterNotFound, "no adapter here does Bluetooth LE", advice: "Plug in one that does.")
        }
        return BluetoothError(
            .adapterNotFound,
            "there is no Bluetooth adapter",
            advice: "Plug one in, and see what `systemctl status bluetooth` and `bluetoothctl list` say."
        )
    }
}

extension Adapter1 {
    /// `nil` if the adapter is on, else the error that says why it is not and what lifts it.
    func powerError(block: @autoclosure () -> RadioBlock?) -> BluetoothError? {
        guard !powered else { return nil }
        let blocked = block()
        if blocked == .hard {
            return BluetoothError(
                .poweredOff,
                "Bluetooth is blocked by a switch of this machine",
                advice: "Turn on its wireless switch or key, or leave flight mode.",
                subject: name
            )
        }
        if blocked == .soft || powerState == "off-blocked" {
            return BluetoothError(
                .poweredOff,
                "Bluetooth is blocked by rfkill",
                advice: "Run `rfkill unblock bluetooth`.",
                subject: name
            )
        }
        return BluetoothError(
            .poweredOff,
            "the Bluetooth adapter is off",
            advice: "Run `bluetoothctl power on`.",
            subject: name
        )
    }
}

/// The calls of `org.bluez.Adapter1` that we make.
extension Adapter1 {
    static func setDiscoveryFilter(_ adapter: ObjectPath, _ filter: DiscoveryFilter, byService: Bool) -> DBusCall {
        call(adapter, "SetDiscoveryFilter", [filter.value(byService: byService)])
    }

    static func startDiscovery(_ adapter: ObjectPath) -> DBusCall { call(adapter, "StartDiscovery") }

    static func stopDiscovery(_ adapter: ObjectPath) -> DBusCall {
        call(adapter, "StopDiscovery", timeout: Limits.stop)
    }

    /// Asked for nothing but the answer's time: bluetoothd has read then what it was sent before.
    static func roundTrip(_ adapter: ObjectPath) -> DBusCall {
        call(adapter, "GetDiscoveryFilters", returning: "as")
    }

    private static func call(
        _ path: ObjectPath,
        _ member: String,
        _ body: [DBusValue] = [],
        returning: String = "",
        timeout: Duration = Limits.call
    ) -> DBusCall {
        DBusCall(BlueZName.service, path, BlueZName.adapter, member, body, returning: returning, timeout: timeout)
    }
}
