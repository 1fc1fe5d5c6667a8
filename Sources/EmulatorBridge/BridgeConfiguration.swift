// SPDX-License-Identifier: MIT

public import BluetoothLE
public import BridgeRadio

/// How a bridge listens, and whom it serves.
public struct BridgeConfiguration: Sendable {
    /// Loopback, unless there is a token. Port 0 lets the system choose.
    public var endpoint: BridgeEndpoint
    /// What a client has to show before anything else, 1 to 256 bytes; `nil`: nothing. It travels in the clear.
    public var token: String?
    /// Clients at the same time, 1 to 256. One more is told so, and cut off.
    public var maximumClients: Int
    /// What `bridgeReady` names.
    public var platform: String
    /// Whether clients may ask for the extension. Without it the bridge is as one that knows the protocol's file only.
    public var offersExtension = true
    /// How long `stop` waits for the radios.
    var cleanUp = Limits.cleanUp

    public init(
        endpoint: BridgeEndpoint = .loopback,
        token: String? = nil,
        maximumClients: Int = 32,
        platform: String = BridgeConfiguration.systemName
    ) {
        self.endpoint = endpoint
        self.token = token
        self.maximumClients = maximumClients
        self.platform = platform
    }

    public static var systemName: String {
        #if os(Linux)
        "Linux"
        #elseif os(macOS)
        "macOS"
        #else
        "other"
        #endif
    }

    func check() throws(BluetoothError) {
        guard (1...256).contains(maximumClients) else {
            throw BluetoothError(.invalidArgument, "the number of clients has to be from 1 to 256")
        }
        guard let token else { return }
        guard Limits.tokenBytes.contains(token.utf8.count) else {
            throw BluetoothError(.invalidArgument, "the token has to be 1 to \(Limits.tokenBytes.upperBound) bytes")
        }
    }

    /// Whether this is the token, in a time that does not depend on where it differs.
    func admits(_ shown: String?) -> Bool {
        guard let token else { return true }
        guard let shown else { return false }
        let (expected, given) = (Array(token.utf8), Array(shown.utf8))
        var difference = UInt8(expected.count == given.count ? 0 : 1)
        for (index, byte) in expected.enumerated() {
            difference |= byte ^ (given.isEmpty ? 0 : given[index % given.count])
        }
        return difference == 0
    }
}

/// The radios that a bridge's clients use.
public enum BridgeRadios: Sendable {
    /// All clients share one.
    case shared(any Radio)
    /// Each client gets one of its own, as in a simulation, where one adapter would not hear itself.
    case each(@Sendable () -> any Radio)
}

/// What happens at a bridge, for whoever runs it.
public enum BridgeNotice: Sendable, Hashable {
    case clientConnected(Int)
    /// The client went, or was cut off for this reason; all that it had is cleaned up.
    case clientLeft(Int, BluetoothError?)
    /// There are as many clients as allowed.
    case clientRefused
}
