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

    private static func pair() throws -> (ours: Int32, theirs: Int32) {
        var ends: [Int32] = [-1, -1]
        try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "a pair of sockets")
        return (ends[0], ends[1])
    }

    private static func expectRefusal(by loop: SocketLoop) async throws {
        let (ours, theirs) = try pair()
        try await requireError(.serviceUnavailable, from: "a socket") {
            try LineSocket(descriptor: ours, loop: loop)
        }
        var byte: UInt8 = 0
        #expect(read(theirs, &byte, 1) == 0)
        close(theirs)
    }

    @Test func aSocketThatNothingWouldServeIsAnErrorAndIsClosed() async throws {
        try await Self.expectRefusal(by: loop)
    }

    /// Without what wakes it the loop would never hear of the socket, nor of any that comes after it.
    @Test func aSocketThatNothingWouldWakeTheLoopForIsAnErrorUntilThereAreDescriptors() async throws {
        let loop = SocketLoop(makeBell: { [isPoor] in isPoor.withLock { $0 } ? nil : SocketSystem.makePipe() })
        try await Self.expectRefusal(by: loop)
        isPoor.withLock { $0 = false }
        let (ours, theirs) = try Self.pair()
        let socket = try LineSocket(descriptor: ours, loop: loop)
        try require(send(theirs, "a\n", 2, 0) == 2, "room for a line")
        let line = try await within(.seconds(10), ContinuousClock(), "a line") { await socket.next() }
        #expect(line == .line([UInt8(ascii: "a")]))
        socket.close()
        close(theirs)
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
