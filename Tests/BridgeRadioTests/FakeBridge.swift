// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Glibc

@testable import BridgeRadio

/// The bridge's end of a connection: it says what a test says, and nothing else.
struct FakeBridge {
    let socket: LineSocket
    let requests: Recorder<BridgeRequest>
    /// What makes the other end's core believe that it has been greeted.
    let greeting: BridgeOpening.Greeting

    /// The other end, which takes this for its bridge.
    var core: BridgeCore { BridgeCore(.loopback) { .success(self.greeting) } }

    init(isExtended: Bool = true) throws {
        var ends: [Int32] = [-1, -1]
        try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "a pair of sockets")
        let socket = try LineSocket(descriptor: ends[0])
        self.socket = socket
        let stream = AsyncStream<BridgeRequest> {
            guard case .line(let line)? = await socket.next() else { return nil }
            return try? BridgeRequest(line: line)
        }
        requests = Recorder(stream, clock: ContinuousClock())
        greeting = BridgeOpening.Greeting(
            wire: BridgeCore.Wire(socket: try LineSocket(descriptor: ends[1]), isExtended: isExtended),
            status: AdapterStatus(.poweredOn, adapter: "fake"),
            scope: .allSubscribers
        )
    }

    /// The next command of that name.
    func next(_ name: String) async throws -> BridgeRequest {
        try await requests.next(within: .seconds(10), "the command “\(name)”") { $0.command.name == name ? $0 : nil }
    }

    func send(_ event: BridgeEvent, answering request: BridgeRequest? = nil) {
        socket.send(BridgeMessage(event, id: request?.id).line())
    }

    func accept(_ request: BridgeRequest) { send(.done(attMTU: nil, isBroadcast: nil), answering: request) }
}

/// Waits until something holds that nothing tells of.
func eventually(_ what: String, _ holds: @escaping @Sendable () async -> Bool) async throws {
    try await within(.seconds(10), ContinuousClock(), what) {
        while await !holds() { try await Task.sleep(for: .milliseconds(5)) }
    }
}
