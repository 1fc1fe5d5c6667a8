// SPDX-License-Identifier: MIT

/// What a version of BlueZ does and another does not, and the faults that a real stack shows.
///
/// The presets are read off BlueZ's source at the tags of their names; every single trait can be changed.
public struct BehaviourProfile: Sendable, Hashable {
    /// A version of BlueZ, such as 5.66.
    public struct Version: Sendable, Hashable, Comparable, CustomStringConvertible {
        public let major: Int
        public let minor: Int

        public init(_ major: Int, _ minor: Int) {
            self.major = major
            self.minor = minor
        }

        public static func < (left: Self, right: Self) -> Bool {
            (left.major, left.minor) < (right.major, right.minor)
        }

        public var description: String { "\(major).\(minor)" }
    }

    public var version: Version

    // MARK: What the D-Bus API has

    /// `Adapter1.Version` and `Manufacturer`: 5.71 and later.
    public var hasAdapterVersion: Bool
    /// `Adapter1.PowerState`: not experimental from 5.71 on.
    public var hasPowerState: Bool
    /// `Device1.Bonded`: 5.65 and later.
    public var hasBonded: Bool
    /// The `Device1.Disconnected` signal, with a reason: 5.83 and later.
    public var hasDisconnectedSignal: Bool
    /// `GattCharacteristic1.MTU`: 5.62 and later.
    public var hasMTUProperty: Bool
    /// `GattService1.Handle` and `GattCharacteristic1.Handle` of remote objects.
    public var hasHandleProperty: Bool
    /// `LEAdvertisingManager1.SupportedCapabilities` and `SupportedFeatures`.
    public var hasAdvertisingCapabilities: Bool
    /// `MinInterval`, `MaxInterval` and `TxPower` of an advertisement are read; older versions ignore them.
    public var readsAdvertisingInterval: Bool

    // MARK: What it does

    /// `Disconnect` is answered before `Connected` is told: before 5.79 (src/device.c, device_remove_connection).
    public var answersDisconnectFirst: Bool
    /// The longest value, in bytes, that a central may write to a local characteristic. From 5.56 to 5.68 bluetoothd
    /// counts the request's header, and refuses 511 and 512 bytes with "invalid attribute value length"
    /// (bluez/bluez#570).
    public var longestWrite: Int
    /// The same of prepared writes, whose header is longer.
    public var longestPreparedWrite: Int
    /// An application's `Failed` may name the ATT error that the central gets: 5.66 and later. Before, it is 0x80.
    public var passesApplicationErrors: Bool
    /// Before 5.60 bluetoothd gathers what an application notifies within 10 ms for a central that takes the
    /// multiple-notification PDU, and writes past the end of it; one before 5.57 reads only the first of it rightly. Here the
    /// rest is lost.
    public var losesQuickNotifications: Bool
    /// Longer data than a legacy advertisement holds goes out as extended advertising (5.76 and later), which legacy
    /// scanners do not see; else it is refused.
    public var fallsBackToExtendedAdvertising: Bool
    /// An advertisement that is too long is one that "failed to parse": before 5.56.
    public var takesTooLongForUnparsable: Bool
    /// An application's `ImproperlyConfigured` is 0xFD for the central: 5.76 and later. Before, it is "unlikely error".
    public var passesImproperlyConfigured: Bool
    /// A discovery filter may have `AutoConnect`: 5.83 and later.
    public var filtersByAutoConnect: Bool
    /// A failed `Connect` says `le-connection-…`: 5.62 and later. Before, it is the text of an errno.
    public var namesConnectionErrors: Bool
    /// A registered advertisement that has become too long ends the daemon (BlueZ commit 6b5447583): 5.56 to 5.74. Before,
    /// what was on the air stays there.
    public var diesOfRefusedRefreshes: Bool

    /// How long the kernel goes on discovering for a daemon that was killed; meanwhile the next one answers
    /// StartDiscovery with `InProgress`. 7.3 s was seen on 5.66.
    public var discoveryOutlivesCrash: Duration = .seconds(7)

    /// A discovery filter that names a service ends the daemon at the first report with any (bluez/bluez#2282): 5.87.
    public var diesOfServiceFilters: Bool

    // MARK: Faults, off unless said otherwise

    /// A long write of more than 504 bytes reaches the application as two WriteValue calls. Reported of 5.66, with
    /// prepared writes of 512 bytes at MTU 23; the lab's 5.66 refuses them (`stack/long-writes`).
    public var splitsLongWrites = false

    /// `ServicesResolved` turns true before the GATT objects are exported (bluez/bluez#1489).
    public var resolvesBeforeExporting = false
    /// `Connected` turns true without a signal: the ATT socket is connected before the kernel tells of the link (src/device.c,
    /// att_connect_cb, since 5.66).
    public var connectsSilently = false
    /// A notification's signal overtakes the answer to StartNotify (hbldh/bleak#1885).
    public var notifiesBeforeStartNotifyAnswer = false
    /// What `mtu` in the options says where it is larger than what the central uses: a phone that asked for 185 and
    /// answers bluetoothd's own exchange with 517 (bluez/bluez#65). `nil`: the true one.
    public var overstatedMTU: Int?
    /// While a central is connected the adapter does not advertise, until the link ends or the application registers
    /// an advertisement again. Seen with every host library tried; on unless switched off.
    public var stopsAdvertisingWhileConnected = true
    /// A notification is cut at MTU-5 instead of MTU-3: the peer takes the multiple-notification PDU, as BlueZ does.
    public var usesMultipleNotificationPDU = false
    /// Properties of a newly found device come in several signals instead of one InterfacesAdded.
    public var splitsDeviceProperties = false
    /// GATT objects of a device stay exported after its link ended, as with bluetoothd's default `Cache = always`.
    public var cachesServices = true

    public init(version: Version) {
        self.version = version
        hasAdapterVersion = version >= Version(5, 71)
        hasPowerState = version >= Version(5, 71)
        hasBonded = version >= Version(5, 65)
        hasDisconnectedSignal = version >= Version(5, 83)
        answersDisconnectFirst = version < Version(5, 79)
        hasMTUProperty = version >= Version(5, 62)
        hasHandleProperty = version >= Version(5, 72)
        hasAdvertisingCapabilities = version >= Version(5, 70)
        readsAdvertisingInterval = version >= Version(5, 56)
        let countsTheHeader = (Version(5, 56)..<Version(5, 69)).contains(version)
        longestWrite = countsTheHeader ? 510 : 512
        longestPreparedWrite = countsTheHeader ? 508 : 512
        passesApplicationErrors = version >= Version(5, 66)
        losesQuickNotifications = version < Version(5, 60)
        fallsBackToExtendedAdvertising = version >= Version(5, 76)
        takesTooLongForUnparsable = version < Version(5, 56)
        passesImproperlyConfigured = version >= Version(5, 76)
        filtersByAutoConnect = version >= Version(5, 83)
        namesConnectionErrors = version >= Version(5, 62)
        diesOfRefusedRefreshes = (Version(5, 56)..<Version(5, 75)).contains(version)
        diesOfServiceFilters = version == Version(5, 87)
    }

    /// Debian 11.
    public static let bluez555 = BehaviourProfile(version: Version(5, 55))
    /// Debian 12, Raspberry Pi OS bookworm.
    public static let bluez566 = BehaviourProfile(version: Version(5, 66))
    /// Debian 13.
    public static let bluez582 = BehaviourProfile(version: Version(5, 82))
    /// Rolling distributions.
    public static let bluez587 = BehaviourProfile(version: Version(5, 87))

    public static let all: [BehaviourProfile] = [.bluez555, .bluez566, .bluez582, .bluez587]

    /// The preset of a version as it is written on a command line, such as "5.66"; `nil` if it is not 5.x with an x
    /// from 50 to 99.
    public init?(named name: String) {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "5", let minor = Int(parts[1]), (50...99).contains(minor)
        else { return nil }
        self.init(version: Version(5, minor))
    }
}
