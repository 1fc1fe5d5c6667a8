// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyDiscoveryKit

@Suite struct ConfigurationTests {
    @Test func aPayloadThatFitsNoProfileIsRefusedWithTheBytesOver() throws {
        var configuration = NearbyHost.Configuration(appId: "com.example.app", sessionId: "s", payload: ["k": ""])
        let empty = Envelope.handoff(appId: "com.example.app", sessionId: "s", payload: ["k": ""]).encoded().count
        configuration.payload = ["k": .string(String(repeating: "x", count: 512 - empty))]
        _ = try configuration.check()
        configuration.payload = ["k": .string(String(repeating: "x", count: 512 - empty + 7))]
        let error = #expect(throws: NearbyError.self) { try configuration.check() }
        #expect(error?.code == .payloadTooLarge)
        #expect(error?.message == "the handoff is 519 bytes, 7 over the 512 that fit")
    }

    @Test func aHandoffPast180BytesIsNoticed() throws {
        var configuration = NearbyHost.Configuration(appId: "a", sessionId: "s")
        #expect(try configuration.check() == [])
        configuration.payload = ["k": .string(String(repeating: "x", count: 180))]
        let notices = try configuration.check()
        #expect(notices.count == 1)
        #expect(notices.first?.contains("beyond 180") == true)
    }

    @Test func valuesThatMobilePeersDoNotReadAreNoticed() throws {
        let configuration = NearbyHost.Configuration(appId: "a", payload: ["port": 80, "room": "SWIFT42", "tls": true])
        let notices = try configuration.check()
        #expect(notices == ["Today's iOS and Android peers read strings only; they will not see: port, tls."])
    }

    @Test(arguments: [
        (NearbyHost.Configuration(appId: ""), "appId"),
        (NearbyHost.Configuration(appId: "a", name: String(repeating: "n", count: 30)), "name"),
        (NearbyHost.Configuration(appId: "a", maximumHandoffs: 0), "maximumHandoffs"),
    ])
    func aHostSettingThatMakesNoSenseIsNamed(configuration: NearbyHost.Configuration, name: String) {
        let error = #expect(throws: NearbyError.self) { try configuration.check() }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains(name) == true)
    }

    @Test func aNameThatJustFitsIsTaken() throws {
        _ = try NearbyHost.Configuration(appId: "a", name: String(repeating: "n", count: 29)).check()
    }

    @Test(arguments: [
        (NearbyClient.Configuration(appId: ""), "appId"),
        (NearbyClient.Configuration(appId: "a", minimumRSSI: 1), "minimumRSSI"),
        (NearbyClient.Configuration(appId: "a", minimumRSSI: -128), "minimumRSSI"),
        (NearbyClient.Configuration(appId: "a", selection: .strongest(within: .zero)), "strongest"),
        (NearbyClient.Configuration(appId: "a", timeout: .zero), "timeout"),
    ])
    func aClientSettingThatMakesNoSenseIsNamed(configuration: NearbyClient.Configuration, name: String) {
        let error = #expect(throws: NearbyError.self) { try configuration.check() }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains(name) == true)
    }

    @Test func aJoinRequestPast508BytesIsRefused() {
        let payload: NearbyPayload = ["k": .string(String(repeating: "x", count: 500))]
        let error = #expect(throws: NearbyError.self) {
            try NearbyClient.Configuration(appId: "a", payload: payload).check()
        }
        #expect(error?.code == .payloadTooLarge)
        #expect(error?.message.hasPrefix("the join request is ") == true)
        #expect(error?.message.hasSuffix(" over the 508 that fit") == true)
    }
}

@Suite struct NearbyPayloadTests {
    private struct Room: Codable, Equatable {
        var roomCode: String
        var seats: Int
        var tags: [String]
    }

    @Test func theSubscriptGivesStringsOnly() {
        let payload: NearbyPayload = ["roomCode": "SWIFT42", "seats": 4, "none": nil]
        #expect(payload["roomCode"] == "SWIFT42")
        #expect(payload["seats"] == nil)
        #expect(payload["none"] == nil)
        #expect(payload["absent"] == nil)
        #expect(payload.object["seats"]?.int == 4)
        #expect(payload.nonStringKeys == ["seats", "none"])
    }

    @Test func aCodableTypeGoesThroughAndBack() throws {
        let room = Room(roomCode: "SWIFT42 / ü", seats: 4, tags: ["a", "b"])
        let payload = try NearbyPayload(encoding: room)
        #expect(payload["roomCode"] == "SWIFT42 / ü")
        #expect(try payload.decode(Room.self) == room)
    }

    @Test func whatIsNoObjectIsRefused() {
        let error = #expect(throws: NearbyError.self) { _ = try NearbyPayload(encoding: [1, 2]) }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func aPayloadThatDoesNotFitTheTypeIsADecodingError() {
        #expect(throws: DecodingError.self) { _ = try (["roomCode": 1] as NearbyPayload).decode(Room.self) }
    }

    @Test func theFirstOfEqualKeysWins() {
        let pairs: NearbyPayload = ["k": "first", "k": "second"]
        #expect(pairs["k"] == "first")
        #expect(pairs.object.count == 1)
    }
}
