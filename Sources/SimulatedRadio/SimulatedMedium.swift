// SPDX-License-Identifier: MIT

public import BluetoothLE

/// Air with Bluetooth LE adapters in it, within this process.
///
/// ```swift
/// let clock = ManualClock()
/// let medium = SimulatedMedium(clock: clock)
/// let host = medium.addAdapter(name: "host")
/// let phone = medium.addAdapter(name: "phone")
/// medium.setRSSI(-42, between: host, and: phone)
/// let value = try await clock.run { … }     // uses both radios; time passes only as far as somebody waits for it
/// ```
///
/// Everything that happens is a function of the calls, the clock and the seed. All calls here are immediate and may be
/// made from any thread. A link stays up, as with BlueZ, when the app forgets its connection: `links` shows it.
public final class SimulatedMedium: Sendable {
    let core: MediumCore

    /// What the medium and its radios measure time with.
    public var clock: any MonotonicClock { core.clock }

    /// - Parameters:
    ///   - clock: A `ManualClock` for tests; `ContinuousClock()` lets real time pass.
    ///   - seed: Decides lost advertisements and jitter.
    public init(clock: any MonotonicClock, seed: UInt64 = 1, conditions: Conditions = Conditions()) {
        core = MediumCore(clock: clock, seed: seed, conditions: conditions)
    }

    public var conditions: Conditions {
        get { core.turn { $0.conditions } }
        set { core.turn { $0.conditions = newValue } }
    }

    /// Adds an adapter that is plugged in and powered on.
    ///
    /// It leaves the medium when the radio and everything got from it is released.
    ///
    /// - Parameters:
    ///   - name: Such as `hci0`; by default `sim` and a number.
    ///   - address: By default a locally administered one that no other adapter of this medium has.
    public func addAdapter(
        name: String? = nil,
        address: BluetoothAddress? = nil,
        configuration: AdapterConfiguration = AdapterConfiguration()
    ) -> SimulatedRadio {
        let record = core.turn { $0.addAdapter(name: name, address: address, configuration: configuration) }
        return SimulatedRadio(
            adapter: AdapterHandle(core: core, id: record.id),
            name: record.name,
            address: record.address
        )
    }

    /// Sets what both hear of each other, in dBm. 127 is reported as it is; `nil` reports without a reading.
    public func setRSSI(_ rssi: Int?, between one: SimulatedRadio, and other: SimulatedRadio) {
        setRSSI(rssi, from: one, to: other)
        setRSSI(rssi, from: other, to: one)
    }

    /// Sets how strongly `receiver` hears `sender`, in dBm.
    public func setRSSI(_ rssi: Int?, from sender: SimulatedRadio, to receiver: SimulatedRadio) {
        core.turn { $0.pairs[Pair(sender.id, receiver.id), default: PairRecord()].rssi = .some(rssi) }
    }

    /// Bounds the ATT MTU of later links between these two, 23 to 517; `nil` leaves it to the adapters.
    public func setMTU(_ mtu: Int?, between one: SimulatedRadio, and other: SimulatedRadio) {
        core.turn {
            $0.pairs[Pair(one.id, other.id), default: PairRecord()].mtu = mtu
            $0.pairs[Pair(other.id, one.id), default: PairRecord()].mtu = mtu
        }
    }

    /// Raises the ATT MTU of the links that there are between these two, as a peer does whose stack exchanges it late.
    ///
    /// - Parameter mtu: at most 517; below what a link has, which no stack can do, it changes nothing.
    public func exchangeMTU(_ mtu: Int, between one: SimulatedRadio, and other: SimulatedRadio) {
        core.turn { $0.exchangeMTU(mtu, one.id, other.id) }
    }

    /// Moves two adapters out of each other's range, or back. A link between them ends by supervision time-out.
    public func setInRange(_ inRange: Bool, between one: SimulatedRadio, and other: SimulatedRadio) {
        core.turn { $0.setInRange(inRange, one.id, other.id) }
    }

    /// Takes down the links between these two.
    ///
    /// - Parameter reason: What the central is told.
    /// - Returns: Whether there was one.
    @discardableResult
    public func drop(
        between one: SimulatedRadio,
        and other: SimulatedRadio,
        reason: DisconnectReason = .timeout
    ) -> Bool {
        core.turn { $0.drop(one.id, other.id, reason: reason) }
    }

    /// The links that are up, the oldest first.
    public var links: [SimulatedLink] {
        core.turn { $0.publicLinks() }
    }

    /// Whether `central` has a link to `peripheral`.
    public func isConnected(_ central: SimulatedRadio, to peripheral: SimulatedRadio) -> Bool {
        core.turn { $0.link(from: central.id, to: peripheral.id) != nil }
    }
}

/// A link that is up.
public struct SimulatedLink: Sendable, Hashable {
    public let central: BluetoothAddress
    public let peripheral: BluetoothAddress
    /// 23 to 517.
    public let attMTU: Int
}
