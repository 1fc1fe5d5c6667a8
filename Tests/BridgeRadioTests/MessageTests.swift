// SPDX-License-Identifier: MIT

import BluetoothLE
import JSON
import Testing

@testable import BridgeRadio

/// Every message of the protocol's file, and what is none.
@Suite struct MessageTests {
    private func object(_ line: [UInt8]) throws -> JSONObject {
        #expect(line.last == UInt8(ascii: "\n"))
        #expect(line.dropLast().contains(UInt8(ascii: "\n")) == false)
        return try JSONObject(parsing: line)
    }

    @Test func `every command of the file is read, and written as it stands there`() throws {
        let examples = try ProtocolFile.examples("commands")
        #expect(examples.count == 11)
        for example in examples {
            let request = try BridgeRequest(line: example.encoded())
            #expect(request.command.name == example.string("command"))
            #expect(try object(request.line()).sorted == example.sorted)
        }
    }

    @Test func `every event of the file is read, and written as it stands there`() throws {
        let examples = try ProtocolFile.examples("events")
        #expect(examples.count == 13)
        for example in examples {
            let message = try BridgeMessage(line: example.encoded())
            #expect(message.event.name == example.string("event"))
            #expect(try object(message.line(isExtended: false)).sorted == example.sorted)
        }
    }

    @Test func `what the extension adds is read back as it was written`() throws {
        let uuid = try #require(BluetoothUUID("7B1E5CA0-4D2F-4E63-9A51-3C88D0176401"))
        let place = LocalCharacteristicID(service: 1, characteristic: 2)
        let attribute = LocalAttribute(service: 0x180A, characteristic: uuid, place: place)
        let remote = RemoteAttribute(connection: "c", service: 0x180A, characteristic: uuid, id: "0011")
        let offer = Offer(
            services: [
                LocalService(uuid, characteristics: [LocalCharacteristic(0x2A29, [.read, .extendedProperties])]),
                LocalService(uuid, isPrimary: false, characteristics: []),
            ],
            advertisement: AdvertisementRequest(
                localName: "é", serviceUUIDs: [uuid], serviceData: [0x180F: [1]], manufacturerData: [0x4C: [2, 3]]),
            session: "s",
            isDetailed: true
        )
        let commands: [BridgeCommand] = [
            .hello(version: 1, token: "secret"), .respond(request: 7, .accept), .respond(request: 7, .value([])),
            .respond(request: 7, .refuse(.application)), .cancel(target: "12"), .advertise(offer),
            .advertise(Offer(services: [], advertisement: nil, session: "s", isDetailed: true)),
            .startScan(services: [], allowDuplicates: true), .connect(address: "a", timeout: .milliseconds(1_500)),
            .discoverServices(connection: "c", services: [uuid], awaiting: 0x2A29), .readCharacteristic(remote),
            .writeCharacteristic(remote, value: [], withResponse: false), .stopAdvertise(session: "s"),
            .sendNotification(connection: nil, attribute, value: [0, 255], session: "s"),
        ]
        for command in commands {
            let request = BridgeRequest(command, id: "1")
            #expect(try BridgeRequest(line: Array(request.line().dropLast())) == request)
        }
        let request = AttributeRequest(
            connection: "c", attribute: attribute, session: "s", request: 9, offset: 504, attMTU: 185)
        let error = BluetoothError(
            .attributeError, "no", advice: "Do.", subject: "x", att: .invalidOffset, cause: "org.bluez.Error")
        let events: [BridgeEvent] = [
            .done(attMTU: 185, isBroadcast: true), .advertisementLost(address: "a"),
            .serving(session: "s", advertising: true, degraded: error), .interrupted(session: "s", error),
            .characteristicReadReceived(request), .characteristicWriteReceived(request, value: [1]),
            .subscriptionChanged(session: "s", attribute, connection: nil, isSubscribed: true, attMTU: 23),
            .error(error, FailureContext(command: "x", connection: "c", characteristic: uuid)),
            .disconnected(connection: "c", error: "e", reason: .timeout, session: "s"),
            .bluetoothStateChanged(AdapterStatus(.resetting, adapter: "hci0", reason: error)),
            .bridgeReady(
                version: 1, platform: "Linux", status: AdapterStatus(.poweredOn), extensionVersion: 1, wantsToken: true
            ),
        ]
        for event in events {
            let message = BridgeMessage(event, id: "1")
            #expect(try BridgeMessage(line: Array(message.line().dropLast())) == message)
        }
    }

    @Test(arguments: [
        (#"{"command":"startScan","serviceUuids":["nothing"]}"#, BridgeMessageError.Code.badField),
        (#"{"command":"startScan","serviceUuids":"180A"}"#, .badField),
        (#"{"command":"connect"}"#, .badField), (#"{"command":"connect","address":7}"#, .badField),
        (#"{"command":"dance"}"#, .unknown), (#"{"event":"connected"}"#, .unknown), (#"{}"#, .unknown),
        (#"[]"#, .notJSON), (#"{"command":"stopScan""#, .notJSON), ("\u{0}\u{1}", .notJSON),
        (#"{"command":"stopScan"} x"#, .notJSON), (#"GET / HTTP/1.1"#, .notJSON),
        (#"{"command":"hello","extension":0}"#, .badField),
        (#"{"command":"discoverServices","connectionId":"\#(String(repeating: "x", count: 257))"}"#, .badField),
    ])
    func `what is no command is refused`(line: String, code: BridgeMessageError.Code) {
        let error = #expect(throws: BridgeMessageError.self) { try BridgeRequest(line: Array(line.utf8)) }
        #expect(error?.code == code)
    }

    @Test func `a refusal has the id, and nesting has an end`() {
        let wrong = #"{"command":"dance","id":"req-1"}"#
        #expect(throws: BridgeMessageError.self) { try BridgeRequest(line: Array(wrong.utf8)) }
        do {
            _ = try BridgeRequest(line: Array(wrong.utf8))
        } catch {
            #expect(error.id == "req-1" && error.command == "dance")
        }
        let deep = String(repeating: "[", count: 100_000)
        let error = #expect(throws: BridgeMessageError.self) { try BridgeRequest(line: Array(deep.utf8)) }
        #expect(error?.code == .notJSON)
    }

    @Test(arguments: [
        "?", "A", "AB", "ABC", "AB=", "ABC=D", "A===", "====", "AB==AB==", "QR==", "QUF=", "QUI-", "QUI= ", "QUJD\n",
    ])
    func `what is no base64 is refused`(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `base64 is that of the RFC`(text: String, encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(text.utf8))
    }

    @Test func `base64 is that of the examples`() {
        #expect(Base64.decode("QXBwbGU=") == Array("Apple".utf8))
        #expect(Base64.encode(Array("Apple".utf8)) == "QXBwbGU=")
        for length in 0...64 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }

    /// 513 bytes are no attribute's value.
    @Test func `a value has at most 512 bytes`() throws {
        func line(_ count: Int) -> [UInt8] {
            let value = Base64.encode([UInt8](repeating: 7, count: count))
            let text =
                #"{"command":"writeCharacteristic","connectionId":"c","serviceUuid":"180A","#
                + #""characteristicUuid":"2A29","value":"\#(value)","withResponse":true}"#
            return Array(text.utf8)
        }
        _ = try BridgeRequest(line: line(512))
        #expect(throws: BridgeMessageError.self) { try BridgeRequest(line: line(513)) }
    }

    /// As Android's JSON library writes it.
    @Test func `an escaped slash, an empty list and unknown keys are read`() throws {
        let text =
            #"{"command":"startScan","serviceUuids":[],"id":"a\/b","new":{"x":[1]}}"#
        let request = try BridgeRequest(line: Array(text.utf8))
        #expect(request == BridgeRequest(.startScan(services: [], allowDuplicates: false), id: "a/b"))
    }

    @Test(
        arguments: [
            ("127.0.0.1:7877", "127.0.0.1:7877"), ("localhost", "localhost:7877"), ("[::1]:80", "[::1]:80"),
            ("[::1]", "[::1]:7877"), ("h:0", "h:0"), ("", nil), (":1", nil), ("h:", nil), ("h:65536", nil),
            ("h:+1", nil),
            ("::1", nil), ("[h]:1", nil), ("a b:1", nil), ("h:1:2", nil), ("[::1]x", nil),
        ] as [(String, String?)])
    func `an endpoint is a host and a port`(text: String, description: String?) {
        #expect(BridgeEndpoint(text)?.description == description)
    }
}
