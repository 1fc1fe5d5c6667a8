// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Glibc
import JSON
import SimulatedRadio
import Testing

@testable import BridgeRadio
@testable import EmulatorBridge

/// What a client can do to a bridge, while another one goes on undisturbed.
@Suite(.timeLimit(.minutes(3))) struct HostileTests {
    /// Runs the attack beside a host and a client that hand something over all the time.
    private func undisturbed(
        _ attack: @escaping @Sendable (Fixture) async throws -> Void
    ) async throws {
        let fixture = try await Fixture.start { medium, _ in .each { medium.addAdapter() } }
        let host = try await fixture.client()
        let client = try await fixture.client()
        host.send(Sample.advertise())
        let link = try await client.connectToSample()
        client.send(Sample.on(link, "setNotify", ["enable": true]))
        let attacking = Task { try await attack(fixture) }
        for round in 1...40 {
            let value = JSONValue.string(Base64.encode([UInt8(round)]))
            client.send(
                Sample.on(
                    link, "writeCharacteristic",
                    ["id": .string("w\(round)"), "value": value, "withResponse": true]))
            let write = try await host.next("characteristicWriteReceived", within: .seconds(5))
            #expect(write["value"] == value)
            let central = try #require(write.string("connectionId"))
            host.send(Sample.on(central, "sendNotification", ["value": value]))
            _ = try await client.next("writeAcknowledged", within: .seconds(5)) { $0.string("id") == "w\(round)" }
            #expect(try await client.next("characteristicChanged", within: .seconds(5))["value"] == value)
        }
        try await attacking.value
        // Whoever comes after it is served.
        try await fixture.client().ready()
        await fixture.bridge.stop()
        #expect(fixture.medium.links.isEmpty)
    }

    @Test func aLineWithoutAnEndIsCutOff() async throws {
        try await undisturbed { fixture in
            let attacker = try await fixture.client()
            try await attacker.ready()
            attacker.send(text: #"{"command":"stopScan"}"# + "\n" + #"{"command":"x","id":""#)
            let chunk = [UInt8](repeating: UInt8(ascii: "a"), count: 262_144)
            // A gibibyte, if it were let.
            for _ in 0..<4_096 {
                while attacker.socket.unsentBytes > 524_288 { try await Task.sleep(for: .milliseconds(1)) }
                if !attacker.socket.send(chunk) { break }
            }
            try await attacker.waitForEnd()
        }
    }

    @Test func whyALineIsCutOffIsTold() async throws {
        let fixture = try await Fixture.start()
        let attacker = try await fixture.client()
        attacker.send(text: #"{"command":"stopScan"}"# + "\n" + String(repeating: "a", count: 65_600))
        #expect(try await attacker.next("error").string("code") == "limitExceeded")
        try await attacker.waitForEnd()
        await fixture.bridge.stop()
    }

    @Test(arguments: [
        "\u{0}\u{1}\u{2}\n", String(repeating: "[", count: 60) + "\n", "{\"command\":\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "nonsense\n",
    ])
    func whatBeginsWithNoCommandIsNoClient(text: String) async throws {
        let radio = HeldRadio()
        let fixture = try await Fixture.start { _, _ in .shared(radio) }
        let attacker = try await fixture.client()
        attacker.send(text: text + #"{"command":"startScan"}"# + "\n")
        #expect(try await attacker.next("error").string("code") == "invalidArgument")
        try await attacker.waitForEnd()
        // Behind the end of all that the client was, so that whatever the lines asked for has been asked of the radio.
        await fixture.bridge.stop()
        #expect(radio.scans.withLock { $0 } == 0)
    }

    @Test(arguments: [
        #"{"command":"writeCharacteristic","connectionId":"c","serviceUuid":"180A","characteristicUuid":"2A29","value":"?"}"#,
        #"{"command":"startScan","serviceUuids":[1]}"#, #"{"command":"advertise","characteristics":[{}]}"#,
        #"{"command":"setNotify","connectionId":"c","serviceUuid":"x","characteristicUuid":"y","enable":1}"#,
        String(repeating: "[", count: 20), "\u{7F}\u{1B}[2J", #"{"id":"x"}"#,
    ])
    func aBadLineIsAnsweredAndTheClientGoesOn(line: String) async throws {
        let fixture = try await Fixture.start()
        let client = try await fixture.client()
        client.send(["command": "stopScan"])
        client.send(text: line + "\n")
        _ = try await client.next("error")
        client.send(["command": "dance", "id": "still here"])
        _ = try await client.next("error") { $0.string("id") == "still here" }
        await fixture.bridge.stop()
    }

    @Test func whoSendsBadLinesOnlyIsCutOff() async throws {
        let fixture = try await Fixture.start()
        let client = try await fixture.client()
        client.send(["command": "stopScan"])
        for _ in 0...Limits.badLines { client.send(text: "[\n") }
        try await client.waitForEnd()
        await fixture.bridge.stop()
    }

    @Test func twoHundredConnectionsAtOnceAndNobodyIsLost() async throws {
        try await undisturbed { fixture in
            var clients: [TestClient] = []
            for _ in 1...200 { clients.append(try await fixture.client()) }
            // Two are the others; the rest up to 32 are let in.
            var refused = 0
            for client in clients {
                let first = try await client.events.next(within: .seconds(20), "a first word") { $0 }
                if first.string("event") == "error" {
                    #expect(first.string("code") == "limitExceeded")
                    refused += 1
                }
            }
            #expect(refused == 170)
            for client in clients { client.close() }
            try await eventually("they are gone") { fixture.bridge.clientCount == 2 }
        }
    }

    @Test func abruptResetsLeaveNothing() async throws {
        try await undisturbed { fixture in
            for _ in 1...30 {
                let descriptor = try await SocketConnector.connect(to: fixture.endpoint).get()
                let half = Array((#"{"command":"startScan"}"# + "\n" + #"{"comm"#).utf8)
                _ = send(descriptor, half, half.count, 0)
                // With this, closing resets the connection.
                var reset = linger(l_onoff: 1, l_linger: 0)
                setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &reset, socklen_t(MemoryLayout<linger>.size))
                close(descriptor)
            }
            try await eventually("they are gone") { fixture.bridge.clientCount == 2 }
        }
    }

    /// What a slow client cannot take is bounded, then it is cut off, and nobody waits for it.
    @Test func whoDoesNotReadIsCutOff() async throws {
        try await undisturbed { fixture in
            var policy = LineSocket.Policy()
            policy.unreadLines = 1
            let descriptor = try await SocketConnector.connect(to: fixture.endpoint).get()
            let slow = try LineSocket(descriptor: descriptor, policy: policy)
            // Each is answered with an error that repeats what it was about.
            let id = String(repeating: "x", count: 200)
            let line = Array((#"{"command":"connect","address":"\#(id)","id":"\#(id)"}"# + "\n").utf8)
            for _ in 0..<20_000 {
                while slow.unsentBytes > 524_288 { try await Task.sleep(for: .milliseconds(1)) }
                if !slow.send(line) { break }
            }
            for await case .clientLeft(_, let reason) in fixture.bridge.events {
                #expect(reason?.code == .limitExceeded)
                break
            }
            #expect(fixture.bridge.clientCount == 2)
            slow.close()
        }
    }

    @Test func aFloodOfCommandsIsSlowedDownAndAnswered() async throws {
        try await undisturbed { fixture in
            let socket = try LineSocket(descriptor: await SocketConnector.connect(to: fixture.endpoint).get())
            let start = ContinuousClock.now
            let count = 8_000
            for number in 0..<count { socket.send(Array(#"{"command":"dance","id":"\#(number)"}"#.utf8) + [10]) }
            // The greeting, and an answer to each, in order.
            for _ in 0..<count { _ = await socket.next() }
            let last = await socket.next()
            guard case .line(let line)? = last else { throw ContractViolation(description: "the end: \(last as Any)") }
            #expect(try JSONObject(parsing: line).string("id") == "\(count - 1)")
            // 4,000 at once, and 2,000 a second; the last chunk is read in one go.
            #expect(start.duration(to: .now) > .milliseconds(1_500))
            socket.close()
        }
    }
}
