// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Testing

@testable import BridgeRadio
@testable import EmulatorBridge

/// While a connection to the bridge comes about.
@Suite(.timeLimit(.minutes(1))) struct OpeningTests {
    enum Use: CaseIterable, Sendable {
        case scan, connect, serve
    }

    private static func use(_ radio: BridgeRadio, for use: Use) async throws {
        switch use {
        case .scan: _ = try await radio.scan(for: ScanFilter())
        case .connect: _ = try await radio.connect(to: PeerIdentifier("someone"), timeout: .seconds(1))
        case .serve: _ = try await radio.serve([], advertising: AdvertisementRequest(serviceUUIDs: [0x180D]))
        }
    }

    @Test(arguments: Use.allCases) func whoIsCancelledDoesNotWaitForTheGreeting(use: Use) async throws {
        let accepted = Latch<Int32>()
        let silent = try await Listener.open(
            BridgeEndpoint(host: "127.0.0.1", port: 0), mayBeRemote: false, onAccept: { accepted.set($0) })
        let radio = BridgeRadio(silent.endpoint)
        let task = Task { try await Self.use(radio, for: use) }
        // The connection is made for the task, which waits for it by now.
        let descriptor = await accepted.value()
        task.cancel()
        try await requireError(.cancelled, from: "\(use)") { try await task.value }
        await radio.shutdown()
        SocketSystem.close(descriptor)
        silent.close()
    }

    /// What may answer in a bridge's place.
    enum Impostor: CaseIterable, Sendable {
        case silent, hangsUp, speaksHTTP, neverEndsItsLine

        var complaint: String {
            switch self {
            case .silent: "has not greeted as a bridge does within 0.2 seconds"
            case .hangsUp: "hung up before it had greeted as a bridge does"
            case .speaksHTTP, .neverEndsItsLine: "is no bridge"
            }
        }

        func serve(_ socket: LineSocket) {
            switch self {
            case .silent: break
            case .hangsUp: socket.close()
            case .speaksHTTP: socket.send(Array("HTTP/1.1 400 Bad Request\r\n".utf8))
            case .neverEndsItsLine: socket.send([UInt8](repeating: 0x20, count: BridgeLimits.lineBytes + 2))
            }
        }
    }

    @Test(arguments: Impostor.allCases) func whatAnswersInPlaceOfABridgeIsToldApart(impostor: Impostor) async throws {
        let served = Latch<LineSocket>()
        let listener = try await Listener.open(BridgeEndpoint(host: "127.0.0.1", port: 0), mayBeRemote: false) {
            guard let socket = try? LineSocket(descriptor: $0) else { return }
            impostor.serve(socket)
            served.set(socket)
        }
        var opening = BridgeOpening(endpoint: listener.endpoint, token: nil)
        // The others are told apart at once.
        opening.patience = impostor == .silent ? .milliseconds(200) : .seconds(30)
        guard case .failure(let error) = await opening.greeting() else {
            throw ContractViolation(description: "took it for a bridge")
        }
        #expect(error.code == .serviceUnavailable)
        #expect(error.message == "what answers at \(listener.endpoint) \(impostor.complaint)")
        await served.value().close()
        listener.close()
    }

    /// The first one ends late.
    @Test func anAttemptThatWasGivenUpChangesNothingForTheNext() async throws {
        let (first, second) = (try FakeBridge(), try FakeBridge())
        let gates = [Latch<BridgeOpening.Greeting>(), Latch<BridgeOpening.Greeting>()]
        let attempts = Locked(0)
        let core = BridgeCore(.loopback) {
            let attempt = attempts.withLock { attempts in
                defer { attempts += 1 }
                return attempts
            }
            return .success(await gates[attempt].value())
        }
        await core.retain()
        try await eventually("the first attempt") { attempts.withLock { $0 } == 1 }
        await core.release()
        await core.abandon()
        await core.retain()
        try await eventually("the second attempt") { attempts.withLock { $0 } == 2 }
        gates[0].set(first.greeting)
        try await first.requests.waitForEnd(within: .seconds(10), "the first connection's end")
        guard case .connecting = await core.phase else {
            throw ContractViolation(description: "the first attempt's phase: \(await core.phase)")
        }
        gates[1].set(second.greeting)
        #expect(try await core.wire().socket === second.greeting.wire.socket)
        await core.shutDown()
    }
}
