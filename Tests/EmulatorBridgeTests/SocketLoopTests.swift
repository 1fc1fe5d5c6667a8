// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Glibc
import Testing

@testable import BridgeRadio
@testable import EmulatorBridge

/// A system that has no thread or no descriptors to give, as under a limit of processes or of open files.
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

    /// Without what wakes it the loop would never hear of the socket, nor of any that comes after it.
    @Test func aSocketThatNothingWouldWakeTheLoopForIsAnErrorUntilThereAreDescriptors() async throws {
        let loop = SocketLoop(makeBell: { [isPoor] in isPoor.withLock { $0 } ? nil : SocketSystem.makePipe() })
        var ends: [Int32] = [-1, -1]
        try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "a pair of sockets")
        try await requireError(.serviceUnavailable, from: "a socket") {
            try LineSocket(descriptor: ends[0], loop: loop)
        }
        var byte: UInt8 = 0
        #expect(read(ends[1], &byte, 1) == 0)
        close(ends[1])
        isPoor.withLock { $0 = false }
        try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "another pair of sockets")
        let socket = try LineSocket(descriptor: ends[0], loop: loop)
        try require(send(ends[1], "a\n", 2, 0) == 2, "room for a line")
        let line = try await within(.seconds(10), ContinuousClock(), "a line") { await socket.next() }
        #expect(line == .line([UInt8(ascii: "a")]))
        socket.close()
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
