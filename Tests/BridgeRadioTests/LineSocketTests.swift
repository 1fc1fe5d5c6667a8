// SPDX-License-Identifier: MIT

import ContractSuite
import Glibc
import Testing

@testable import BridgeRadio

/// However a connection ends, whoever waits for that is told.
@Suite(.timeLimit(.minutes(1))) struct LineSocketTests {
    private static func pair(_ policy: LineSocket.Policy = LineSocket.Policy()) throws -> (LineSocket, peer: Int32) {
        var ends: [Int32] = [-1, -1]
        try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "a pair of sockets")
        return (try LineSocket(descriptor: ends[0], policy: policy), ends[1])
    }

    @Test func ourCloseIsAnEnd() async throws {
        let (socket, peer) = try Self.pair()
        socket.close()
        await socket.ended()
        close(peer)
    }

    @Test func thePeersCloseIsAnEnd() async throws {
        let (socket, peer) = try Self.pair()
        close(peer)
        await socket.ended()
        #expect(!socket.send([10]))
    }

    /// What it had sent is all there still: some of it here, the rest with the system.
    @Test func thePeersCloseIsAnEndWhileNoMoreIsRead() async throws {
        var policy = LineSocket.Policy()
        policy.unreadLines = 1
        let (socket, peer) = try Self.pair(policy)
        let line = [UInt8](repeating: UInt8(ascii: "a"), count: 10_000)
        for _ in 1...5 { try require(send(peer, line + [10], 10_001, 0) == 10_001, "room for all") }
        shutdown(peer, Int32(SHUT_WR))
        try await within(.seconds(10), ContinuousClock(), "the end") { await socket.ended() }
        #expect(!socket.send([10]))
        for _ in 1...5 { #expect(await socket.next() == .line(line)) }
        #expect(await socket.next() == nil)
        close(peer)
    }

    @Test func aPeerThatDoesNotReadIsAnEnd() async throws {
        var policy = LineSocket.Policy()
        policy.unsentBytes = 10
        let (socket, peer) = try Self.pair(policy)
        #expect(!socket.send([UInt8](repeating: 10, count: 11)))
        await socket.ended()
        close(peer)
    }
}
