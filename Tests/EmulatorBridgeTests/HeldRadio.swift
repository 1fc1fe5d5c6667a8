// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Glibc
import JSON

@testable import BridgeRadio
@testable import EmulatorBridge

/// A radio whose links do nothing before a test lets them.
final class HeldRadio: Radio {
    /// By the device's address.
    private let links = Locked<[String: HeldLink]>([:])
    private let addresses: [String]
    private let session: HeldSession?
    /// Scans that have been asked for.
    let scans = Locked(0)

    /// - Parameters:
    ///   - devices: How many a scan reports, at most 9,999.
    ///   - session: What is served; `nil`: nothing can be.
    init(devices: Int = 1, session: HeldSession? = nil) {
        addresses = (1...devices).map { number in
            let digits = String(10_000 + number).dropFirst()
            return "00:00:5E:00:\(digits.prefix(2)):\(digits.suffix(2))"
        }
        self.session = session
    }

    func link(to address: String) -> HeldLink? { links.withLock { $0[address] } }

    var clock: any MonotonicClock { ContinuousClock() }
    var notificationScope: NotificationScope { .allSubscribers }

    func adapterStatuses() -> AsyncStream<AdapterStatus> {
        let (stream, continuation) = AsyncStream.makeStream(of: AdapterStatus.self)
        continuation.yield(AdapterStatus(.poweredOn, adapter: "held"))
        return stream
    }

    func scan(for filter: ScanFilter) async throws(BluetoothError) -> Scan {
        scans.withLock { $0 += 1 }
        let (stream, continuation) = AsyncStream.makeStream(of: ScanEvent.self)
        for address in addresses {
            let found = Discovery(
                peer: PeerIdentifier(address), address: BluetoothAddress(address), advertisement: Advertisement(),
                rssi: -50, time: .now)
            continuation.yield(.discovered(found))
        }
        return Scan(events: stream) { continuation.finish() }
    }

    func connect(
        to peer: PeerIdentifier, timeout: Duration
    ) async throws(BluetoothError) -> any PeripheralConnection {
        let link = HeldLink(peer)
        links.withLock { $0[peer.rawValue] = link }
        return link
    }

    func serve(
        _ services: [LocalService], advertising advertisement: AdvertisementRequest?
    ) async throws(BluetoothError) -> any PeripheralSession {
        guard let session else { throw BluetoothError(.advertisingFailed, "this radio serves nothing") }
        return session
    }
}

/// A link on which everything waits: discovery and the end for the test, writes for the end.
final class HeldLink: PeripheralConnection {
    let peer: PeerIdentifier
    /// Lets discovery go on.
    let discovery = Latch<Void>()
    /// Lets the link go down.
    let release = Latch<Void>()
    let writes = Locked(0)
    let disconnects = Locked(0)
    /// What is discovered.
    let services = Locked([
        RemoteService(id: "s", uuid: HeldLink.service, isPrimary: true, characteristics: [HeldLink.characteristic])
    ])
    private let down = Latch<DisconnectReason>()

    static let service = BluetoothUUID(0x180D)
    static let characteristic = RemoteCharacteristic(id: "c", uuid: 0x2A37, properties: [.write, .notify])

    init(_ peer: PeerIdentifier) { self.peer = peer }

    var attMTU: Int? { 23 }

    func discoverServices(awaiting awaited: BluetoothUUID?) async throws(BluetoothError) -> [RemoteService] {
        await discovery.value()
        return services.withLock { $0 }
    }

    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] { [] }

    func write(
        _ value: [UInt8], to characteristic: RemoteCharacteristic, type: WriteType
    ) async throws(BluetoothError) {
        writes.withLock { $0 += 1 }
        _ = await down.value()
        throw BluetoothError(.disconnected, "the link is down")
    }

    func subscribe(to characteristic: RemoteCharacteristic) async throws(BluetoothError) -> Subscription {
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        return Subscription(values: stream) { continuation.finish() }
    }

    func disconnect() async {
        disconnects.withLock { $0 += 1 }
        await release.value()
        down.set(.local)
    }

    func disconnection() async -> DisconnectReason { await down.value() }
}

/// One client's session, without a bridge around it.
struct SessionFixture {
    let radio: HeldRadio
    let session: ClientSession
    let client: TestClient
    let run: Task<BluetoothError?, Never>

    /// - Parameter isExtended: Whether the client asks for the extension.
    static func start(
        devices: Int = 1, serving served: HeldSession? = nil, isExtended: Bool
    ) async throws -> SessionFixture {
        var ends: [Int32] = [-1, -1]
        try require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "a pair of sockets")
        let radio = HeldRadio(devices: devices, session: served)
        let session = ClientSession(
            number: 1, socket: try LineSocket(descriptor: ends[0]), radio: radio, configuration: BridgeConfiguration(),
            claims: nil)
        let client = TestClient(try LineSocket(descriptor: ends[1]))
        let run = Task { await session.run() }
        try await client.ready()
        if isExtended {
            client.send(["command": "hello", "extension": 1, "id": "h"])
            try await client.done("h")
        }
        return SessionFixture(radio: radio, session: session, client: client, run: run)
    }

    /// The ids of links to all devices.
    func connect(devices: Int = 1) async throws -> [(id: String, link: HeldLink)] {
        client.send(["command": "startScan"])
        var found: [(id: String, link: HeldLink)] = []
        for _ in 1...devices {
            let address = try require(try await client.next("advertisementFound").string("address"), "an address")
            client.send(["command": "connect", "address": .string(address)])
            let id = try require(try await client.next("connected").string("connectionId"), "the connection's id")
            found.append((id, try require(radio.link(to: address), "the link")))
        }
        return found
    }
}

extension TestClient {
    func done(_ id: String) async throws { _ = try await next("done") { $0.string("id") == id } }

    func failure(_ id: String) async throws -> String? {
        try await next("error") { $0.string("id") == id }.string("code")
    }
}
