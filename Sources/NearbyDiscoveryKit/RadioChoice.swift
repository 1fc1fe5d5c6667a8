// SPDX-License-Identifier: MIT

public import BluetoothLE
import BridgeRadio

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#endif

extension DefaultRadio {
    /// Names the bridge to use where there is no adapter, as `HOST:PORT`.
    public static let bridgeVariable = "NEARBY_BRIDGE"
    /// The token that the bridge wants, if it does.
    public static let bridgeTokenVariable = "NEARBY_BRIDGE_TOKEN"

    /// The radio for an app that names none: this machine's adapter if there is one, else the bridge that the
    /// environment variable `NEARBY_BRIDGE` names. Never a simulation.
    ///
    /// Without that variable it is this machine's radio, and what is missing shows when it is used. With it, the call
    /// takes up to 3 s to find out whether there is an adapter. One that is off is one.
    ///
    /// - Throws: `invalidConfiguration` where the variable is no address; `adapterNotFound` where this system has no
    ///   radio of ours, and the variable is not set.
    public static func choose(bus: String? = nil, adapter: String? = nil) async throws(NearbyError) -> any Radio {
        guard let bridge = environment(bridgeVariable) else { return try make(bus: bus, adapter: adapter) }
        let local = try? make(bus: bus, adapter: adapter)
        return try await choose(local: local, bridge: bridge, token: environment(bridgeTokenVariable))
    }

    /// A radio through a bridge: `HOST:PORT`, `HOST`, or `[ADDRESS]:PORT`.
    ///
    /// - Throws: `invalidConfiguration`.
    public static func bridge(_ address: String, token: String? = nil) throws(NearbyError) -> any Radio {
        guard let endpoint = BridgeEndpoint(address), endpoint.port > 0 else {
            throw NearbyError(
                .invalidConfiguration, "the address of the bridge cannot be read",
                advice: "Write HOST:PORT, such as \(BridgeEndpoint.loopback).")
        }
        return BridgeRadio(endpoint, token: token)
    }

    static func choose(local: (any Radio)?, bridge: String, token: String?) async throws(NearbyError) -> any Radio {
        // A wrong address is told also where it is not needed: it will be one day.
        let remote = try Self.bridge(bridge, token: token)
        if let local, await hasAdapter(local) { return local }
        return remote
    }

    /// A variable of the environment; `nil` also where it is empty.
    package static func environment(_ name: String) -> String? {
        guard let text = getenv(name).map({ String(cString: $0) }), !text.isEmpty else { return nil }
        return text
    }

    /// Whether there is an adapter at all, whatever its state.
    private static func hasAdapter(_ radio: any Radio) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await status in radio.adapterStatuses() {
                    switch status.state {
                    case .poweredOn, .poweredOff: return true
                    case .unsupported, .unauthorized: return false
                    case .unknown, .resetting: continue
                    }
                }
                return false
            }
            group.addTask { [clock = radio.clock] in
                try? await clock.sleep(for: Limits.adapterSearch)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}

extension NearbyError {
    /// What the facade says of a radio that it has chosen itself.
    func namingBridges() -> NearbyError {
        guard code == .adapterNotFound || code == .serviceUnavailable else { return self }
        var error = self
        let bridge =
            "Or use another machine's Bluetooth: run `nearby bridge` there, and set \(DefaultRadio.bridgeVariable) to "
            + "its HOST:PORT."
        error.advice = [advice ?? cause?.advice, bridge].compactMap { $0 }.joined(separator: " ")
        return error
    }
}
