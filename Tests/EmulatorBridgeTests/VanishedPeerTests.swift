// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Glibc
import Testing

@testable import BridgeRadio
@testable import EmulatorBridge

/// A peer whose machine crashes, or whose cable is pulled, says no goodbye. The system has to be told to ask.
@Suite(.timeLimit(.minutes(1))) struct VanishedPeerTests {
    private static func option(_ level: Int32, _ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, level, name, &value, &size) == 0 ? value : nil
    }

    private static func expectVigilance(_ descriptor: Int32, _ whose: String) {
        let tcp = Int32(IPPROTO_TCP)
        #expect(option(SOL_SOCKET, SO_KEEPALIVE, of: descriptor) == 1, "\(whose)")
        #expect(option(tcp, TCP_KEEPIDLE, of: descriptor) == 15, "\(whose)")
        #expect(option(tcp, TCP_KEEPINTVL, of: descriptor) == 5, "\(whose)")
        #expect(option(tcp, TCP_KEEPCNT, of: descriptor) == 3, "\(whose)")
        #expect(option(tcp, TCP_USER_TIMEOUT, of: descriptor) == 60_000, "\(whose)")
    }

    @Test func bothEndsAskASilentPeerWhetherItIsThere() async throws {
        let accepted = Latch<Int32>()
        let listener = try await Listener.open(
            BridgeEndpoint(host: "127.0.0.1", port: 0), mayBeRemote: false, onAccept: { accepted.set($0) })
        let dialled = try await SocketConnector.connect(to: listener.endpoint).get()
        let (server, client) = (await accepted.value(), dialled)
        let sockets = [try LineSocket(descriptor: server), try LineSocket(descriptor: client)]
        Self.expectVigilance(server, "the bridge's")
        Self.expectVigilance(client, "the client's")
        for socket in sockets { socket.close() }
        listener.close()
    }
}
