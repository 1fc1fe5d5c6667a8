// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import JSON
import SimulatedRadio

@testable import BridgeRadio
@testable import EmulatorBridge

/// A bridge over simulated radios, in real time.
struct Fixture {
    let medium: SimulatedMedium
    let radio: SimulatedRadio
    let bridge: EmulatorBridge
    let endpoint: BridgeEndpoint

    static func start(
        _ configuration: BridgeConfiguration = BridgeConfiguration(),
        adapter: AdapterConfiguration = AdapterConfiguration(),
        radios: ((SimulatedMedium, SimulatedRadio) -> BridgeRadios)? = nil
    ) async throws -> Fixture {
        let medium = SimulatedMedium(clock: ContinuousClock(), seed: 3)
        let radio = medium.addAdapter(name: "hci0", configuration: adapter)
        var configuration = configuration
        configuration.endpoint = BridgeEndpoint(host: "127.0.0.1", port: 0)
        let bridge = try EmulatorBridge(
            radios: radios?(medium, radio) ?? .shared(radio), configuration: configuration)
        return Fixture(medium: medium, radio: radio, bridge: bridge, endpoint: try await bridge.start())
    }

    func client() async throws -> TestClient { try await TestClient.connect(endpoint) }
}

/// A client of the plain protocol: what is sent is exactly what a test says.
struct TestClient {
    let socket: LineSocket
    let events: Recorder<JSONObject>

    static func connect(
        _ endpoint: BridgeEndpoint,
        policy: LineSocket.Policy = LineSocket.Policy()
    ) async throws -> TestClient {
        let descriptor = try await SocketConnector.connect(to: endpoint).get()
        return TestClient(try LineSocket(descriptor: descriptor, policy: policy))
    }

    init(_ socket: LineSocket) {
        let stream = AsyncStream<JSONObject> {
            guard case .line(let line)? = await socket.next() else { return nil }
            return try? JSONObject(parsing: line)
        }
        self.socket = socket
        events = Recorder(stream, clock: ContinuousClock())
    }

    func send(_ object: JSONObject) { socket.send(object.encoded() + [10]) }

    func send(text: String) { socket.send(Array(text.utf8)) }

    func next(
        _ event: String,
        within limit: Duration = .seconds(20),
        where matches: @escaping @Sendable (JSONObject) -> Bool = { _ in true }
    ) async throws -> JSONObject {
        try await events.next(within: limit, "an event “\(event)”") {
            $0.string("event") == event && matches($0) ? $0 : nil
        }
    }

    func ready() async throws { _ = try await next("bridgeReady") }

    func waitForEnd() async throws { try await events.waitForEnd(within: .seconds(20), "the connection's end") }

    func close() { socket.close() }
}

/// The protocol file's service and characteristic.
enum Sample {
    static let service = "A1B2C3D4-E5F6-7890-ABCD-EF1234567890"
    static let characteristic = "B2C3D4E5-F6A7-8901-BCDE-F12345678901"

    static func advertise(_ service: String = service, properties: [JSONValue] = ["write", "notify"]) -> JSONObject {
        [
            "command": "advertise", "serviceUuids": [.string(service)], "localName": "MyDevice",
            "characteristics": [
                [
                    "serviceUuid": .string(service), "characteristicUuid": .string(characteristic),
                    "properties": .array(properties), "permissions": ["readable", "writeable"],
                ]
            ],
        ]
    }

    static func on(_ connection: String, _ command: String, _ more: JSONObject = [:]) -> JSONObject {
        var object: JSONObject = [
            "command": .string(command), "connectionId": .string(connection), "serviceUuid": .string(service),
            "characteristicUuid": .string(characteristic),
        ]
        for (key, value) in more { object[key] = value }
        return object
    }
}

extension TestClient {
    /// Scans, and connects to whoever advertises the sample's service.
    func connectToSample() async throws -> String {
        send(["command": "startScan", "serviceUuids": [.string(Sample.service)]])
        let found = try await next("advertisementFound")
        send(["command": "stopScan"])
        send(["command": "connect", "id": "c", "address": found["address"] ?? .null])
        return try require(try await next("connected").string("connectionId"), "the connection's id")
    }
}

/// Waits until something holds that no event tells of.
func eventually(_ what: String, _ holds: @escaping @Sendable () -> Bool) async throws {
    try await within(.seconds(20), ContinuousClock(), what) {
        while !holds() { try await Task.sleep(for: .milliseconds(5)) }
    }
}
