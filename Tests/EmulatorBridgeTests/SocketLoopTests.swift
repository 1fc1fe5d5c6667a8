// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Glibc
import Testing

@testable import BridgeRadio
@testable import EmulatorBridge

/// A system that has no thread to give, as under a limit of processes.
@Suite(.timeLimit(.minutes(1))) struct SocketLoopTests {
    private let isPoor = Locked(true)
    private let loop: SocketLoop

    init() {
        loop = SocketLoop { [isPoor] body in
            isPoor.withLock { $0 } ? false : SocketSystem.startThread(body)
        }
    }

    @Test func aSocketThatNothingWouldServeIsAnErrorAndIsClosed() async throws {
        var ends: [Int32] = [-1, -1]
        try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "a pair of sockets")
        try await requireError(.serviceUnavailable, from: "a socket") {
            try LineSocket(descriptor: ends[0], loop: loop)
        }
        var byte: UInt8 = 0
        #expect(read(ends[1], &byte, 1) == 0)
        close(ends[1])
    }

    @Test func aListenerThatNothingWouldServeIsAnErrorUntilThereIsAThread() async throws {
        let anywhere = BridgeEndpoint(host: "127.0.0.1", port: 0)
        try await requireError(.serviceUnavailable, from: "a listener") {
            try await Listener.open(anywhere, mayBeRemote: false, loop: loop) { _ in }
        }
        isPoor.withLock { $0 = false }
        let accepted = Latch<Int32>()
        let listener = try await Listener.open(
            anywhere, mayBeRemote: false, loop: loop, onAccept: { accepted.set($0) })
        let client = try await SocketConnector.connect(to: listener.endpoint).get()
        SocketSystem.close(await accepted.value())
        SocketSystem.close(client)
        listener.close()
    }
}
