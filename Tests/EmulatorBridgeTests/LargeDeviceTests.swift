// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import JSON
import Testing

@testable import BridgeRadio
@testable import EmulatorBridge

/// A device whose GATT database does not fit in an answer.
@Suite(.timeLimit(.minutes(1))) struct LargeDeviceTests {
    struct Size: Sendable, CustomTestStringConvertible {
        var services = 1
        var characteristics = 1
        var idBytes = 8
        var isExtended = true

        var testDescription: String {
            "\(services) × \(characteristics), ids of \(idBytes) bytes, \(isExtended ? "extended" : "plain")"
        }

        /// The first has another UUID than the rest.
        var all: [RemoteService] {
            (0..<services).map { service in
                let all = (0..<characteristics).map { number in
                    let digits = "\(service).\(number)"
                    let id = digits + String(repeating: "x", count: max(idBytes - digits.utf8.count, 0))
                    return RemoteCharacteristic(id: id, uuid: 0x2A37, properties: [.write, .notify])
                }
                return RemoteService(
                    id: "s\(service)", uuid: service == 0 ? 0x180F : 0x180D, isPrimary: true, characteristics: all)
            }
        }
    }

    private static func discover(
        _ size: Size, _ more: JSONObject = [:]
    ) async throws -> (answer: JSONObject, device: String) {
        let fixture = try await SessionFixture.start(isExtended: size.isExtended)
        let (id, link) = try #require(try await fixture.connect().first)
        link.services.withLock { $0 = size.all }
        link.discovery.set(())
        link.release.set(())
        var command: JSONObject = ["command": "discoverServices", "id": "d", "connectionId": .string(id)]
        for (key, value) in more { command[key] = value }
        fixture.client.send(command)
        let answer = try await fixture.client.events.next(within: .seconds(20), "an answer") {
            $0.string("id") == "d" ? $0 : nil
        }
        // The connection is as good as before.
        fixture.client.send(["command": "dance", "id": "fence"])
        _ = try await fixture.client.failure("fence")
        fixture.client.close()
        return (answer, link.peer.rawValue)
    }

    /// A longer line would make the client hang up, and one that lists more could not be read.
    @Test(
        arguments: [
            (Size(services: 65, isExtended: true), "65 services"),
            (Size(services: 65, isExtended: false), "65 services"),
            (Size(characteristics: 257, isExtended: true), "257 characteristics"),
            (Size(services: 2, characteristics: 129, isExtended: false), "258 characteristics"),
            (Size(services: 64, characteristics: 4, idBytes: 250), "bytes of services"),
        ])
    func whatDoesNotFitInAnAnswerIsAnErrorThatNamesTheDeviceAndTheLimit(size: Size, words: String) async throws {
        let (answer, device) = try await Self.discover(size)
        #expect(answer.string("event") == "error" && answer.string("code") == "limitExceeded")
        #expect(answer.string("subject") == device)
        #expect(answer.string("error")?.contains(words) == true, "\(answer)")
    }

    @Test(arguments: [true, false]) func asMuchAsTheProtocolAllowsIsTold(isExtended: Bool) async throws {
        let (answer, _) = try await Self.discover(Size(services: 64, characteristics: 4, isExtended: isExtended))
        #expect(answer.array("services")?.count == 64)
        let line = answer.encoded()
        #expect(try BridgeMessage(line: line).id == "d")
    }

    @Test func ofALargeDeviceWhatIsAskedForIsTold() async throws {
        let (answer, _) = try await Self.discover(Size(services: 65), ["serviceUuids": ["180F"]])
        #expect(answer.array("services")?.count == 1)
    }
}
