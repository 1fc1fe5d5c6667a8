// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Testing

@testable import BridgeRadio

/// A link through a bridge, and what the bridge is asked for on it.
@Suite(.timeLimit(.minutes(1))) struct LinkTests {
    private let fake: FakeBridge
    private let core: BridgeCore

    init() throws {
        fake = try FakeBridge()
        core = fake.core
    }

    private static func services(_ count: Int) -> [RemoteService] {
        (0..<count).map {
            let characteristic = RemoteCharacteristic(id: "c\($0)", uuid: 0x2A37, properties: [.notify])
            return RemoteService(id: "s\($0)", uuid: 0x180D, isPrimary: true, characteristics: [characteristic])
        }
    }

    private func link() async throws -> BridgeLink {
        let connecting = Task { [core] in try await core.connect(to: PeerIdentifier("device"), timeout: .seconds(10)) }
        let request = try await fake.next("connect")
        fake.send(.connected(connection: "link", address: "device", attMTU: 23), answering: request)
        return try await connecting.value
    }

    private func discover(_ link: BridgeLink, _ services: [RemoteService]) async throws -> [RemoteService] {
        let discovering = Task { try await link.discoverServices(awaiting: nil) }
        let request = try await fake.next("discoverServices")
        fake.send(.servicesDiscovered(connection: "link", services, attMTU: 23), answering: request)
        return try await within(.seconds(10), ContinuousClock(), "an end") { try await discovering.value }
    }

    /// Without a link that the fake would have to take down.
    private func end(_ link: BridgeLink) async {
        fake.send(.disconnected(connection: "link", error: nil, reason: .remote, session: ""))
        _ = await link.disconnection()
        await core.shutDown()
    }

    /// It has an id: nobody need wait for another.
    @Test func anAnswerThatCannotBeReadIsAnErrorAtOnceAndTheLinkGoesOn() async throws {
        let link = try await link()
        let error = try await requireError(.internalFailure, from: "the discovery") {
            try await discover(link, Self.services(BridgeLimits.services + 1))
        }
        #expect(error.message.contains("discoverServices") && error.cause?.contains("services") == true)
        #expect(try await discover(link, Self.services(1)).count == 1)
        await end(link)
    }

    /// A bridge of a later version may tell how far it is.
    @Test func anEventThatNobodyKnowsIsNoAnswer() async throws {
        let link = try await link()
        let discovering = Task { try await link.discoverServices(awaiting: nil) }
        let request = try await fake.next("discoverServices")
        fake.socket.send(Array(#"{"event":"progress","id":"\#(request.id ?? "")"}"#.utf8) + [10])
        fake.send(.servicesDiscovered(connection: "link", Self.services(1), attMTU: 23), answering: request)
        #expect(try await discovering.value.count == 1)
        await end(link)
    }

    private func characteristic(of link: BridgeLink) async throws -> RemoteCharacteristic {
        try require(try await discover(link, Self.services(1)).first?.characteristics.first, "a characteristic")
    }

    /// In any order that two tasks can come in.
    @Test func aReaderThatComesAsTheLastOneGoesGetsItsValues() async throws {
        let link = try await link()
        let characteristic = try await characteristic(of: link)
        let isNotifying = Locked(false)
        let bridge = Task { [fake] in
            while let request = try? await fake.next("setNotify") {
                if case .setNotify(_, let enable) = request.command { isNotifying.withLock { $0 = enable } }
                fake.accept(request)
            }
        }
        var reader = try await link.subscribe(to: characteristic)
        for round in 0..<300 {
            let next = Task {
                for _ in 0..<round % 10 { await Task.yield() }
                return try await link.subscribe(to: characteristic)
            }
            await reader.cancel()
            reader = try await next.value
            try require(isNotifying.withLock { $0 }, "round \(round): the bridge notifies nobody")
        }
        await reader.cancel()
        #expect(!isNotifying.withLock { $0 })
        await end(link)
        fake.socket.close()
        await bridge.value
    }

    /// The one before has left it to this one to say that nobody reads any more.
    @Test func aReaderThatFailsAsTheLastOneGoesLeavesNoSubscription() async throws {
        let link = try await link()
        let characteristic = try await characteristic(of: link)
        let subscribing = Task { try await link.subscribe(to: characteristic) }
        fake.accept(try await fake.next("setNotify"))
        let first = try await subscribing.value
        let second = Task { try await link.subscribe(to: characteristic) }
        let request = try await fake.next("setNotify")
        await first.cancel()
        fake.send(.error(BluetoothError(.busy, "not now"), FailureContext(request.command)), answering: request)
        try await requireError(.busy, from: "the second reader") { try await second.value }
        let last = try await fake.next("setNotify")
        guard case .setNotify(_, enable: false) = last.command else {
            throw ContractViolation(description: "\(last.command)")
        }
        fake.accept(last)
        await end(link)
    }
}
