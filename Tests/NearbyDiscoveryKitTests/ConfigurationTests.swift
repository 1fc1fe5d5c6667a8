// SPDX-License-Identifier: MIT

import Testing

@testable import NearbyDiscoveryKit

@Suite struct ConfigurationTests {
    @Test func aPayloadThatFitsNoProfileIsRefusedWithTheBytesOver() throws {
        var configuration = NearbyHost.Configuration(
            appId: "com.example.app", sessionId: "s", payload: ["k": ""], profile: .basic)
        let empty = Envelope.handoff(appId: "com.example.app", sessionId: "s", payload: ["k": ""]).encoded().count
        configuration.payload = ["k": .string(String(repeating: "x", count: 512 - empty))]
        _ = try configuration.check()
        configuration.payload = ["k": .string(String(repeating: "x", count: 512 - empty + 7))]
        let error = #expect(throws: NearbyError.self) { try configuration.check() }
        #expect(error?.code == .payloadTooLarge)
        #expect(error?.message == "the handoff is 519 bytes, 7 over the 512 that fit")
        let bytes = configuration.payload.object.encoded().count
        let sizes = "The payload is \(bytes) bytes of them, and \(bytes - 7) fit. "
        #expect(error?.advice?.hasPrefix(sizes) == true)
    }

    @Test func whatFitsTheExtendedProfileOnlyIsANotice() throws {
        var configuration = NearbyHost.Configuration(
            appId: "a", payload: ["k": .string(String(repeating: "x", count: 600))])
        #expect(try configuration.check().count == 1)
        configuration.basicProfile = .refused
        #expect(try configuration.check() == [])
        configuration.payload = ["k": .string(String(repeating: "x", count: 65_536))]
        let error = #expect(throws: NearbyError.self) { try configuration.check() }
        #expect(error?.code == .payloadTooLarge)
        #expect(error?.message.hasSuffix(" over the 65536 that fit") == true)
    }

    @Test func theLimitThatTheAppSetsIsTheOneThatCounts() throws {
        var configuration = NearbyHost.Configuration(appId: "a", profile: .extended, maximumEnvelopeBytes: 1_024)
        configuration.payload = ["k": .string(String(repeating: "x", count: 1_024))]
        #expect(throws: NearbyError.self) { try configuration.check() }
        configuration.maximumEnvelopeBytes = 2_048
        _ = try configuration.check()
        configuration.maximumEnvelopeBytes = 65_537
        let error = #expect(throws: NearbyError.self) { try configuration.check() }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test(arguments: ["", "123", "12345\u{e9}", String(repeating: "1", count: 65)])
    func aPasscodeThatIsNoneIsRefusedWithoutBeingRepeated(text: String) {
        let host = #expect(throws: NearbyError.self) {
            try NearbyHost.Configuration(appId: "a", security: .passcode(text)).check()
        }
        let client = #expect(throws: NearbyError.self) {
            try NearbyClient.Configuration(appId: "a", security: .passcode(text)).check()
        }
        for error in [host, client] {
            #expect(error?.code == .invalidConfiguration)
            if text.count > 2 { #expect(error?.description.contains(text) == false) }
        }
    }

    @Test(arguments: [
        NearbyHost.Configuration(appId: "a", profile: .basic, security: .passcode("482913")),
        NearbyHost.Configuration(appId: "a", security: .passcode("482913"), basicProfile: .allowed),
        NearbyHost.Configuration(appId: "a", profile: .extended, basicProfile: .allowed),
        NearbyHost.Configuration(appId: "a", profile: .basic, basicProfile: .refused),
    ])
    func profilesThatExcludeEachOtherAreRefused(configuration: NearbyHost.Configuration) {
        let error = #expect(throws: NearbyError.self) { try configuration.check() }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.advice != nil)
    }

    @Test func aClientWithAPasscodeAndTheBasicProfileIsRefused() {
        let error = #expect(throws: NearbyError.self) {
            try NearbyClient.Configuration(appId: "a", profile: .basic, security: .passcode("482913")).check()
        }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func aPasscodeIsNeverShown() {
        let configuration = NearbyHost.Configuration(appId: "a", security: .passcode("482913"))
        var dumped = ""
        dump(configuration, to: &dumped)
        for text in ["\(configuration)", dumped, String(reflecting: configuration), "\(configuration.security)"] {
            #expect(!text.contains("482913"))
        }
    }

    @Test func reservedKeysAreRefused() {
        let payload: NearbyPayload = ["ndk.requestId": "x"]
        for profile in ProfileChoice.allCases {
            #expect(throws: NearbyError.self) {
                try NearbyHost.Configuration(appId: "a", payload: payload, profile: profile).check()
            }
            #expect(throws: NearbyError.self) {
                try NearbyClient.Configuration(appId: "a", payload: payload, profile: profile).check()
            }
        }
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

    @Test func aJoinRequestPast508BytesIsRefusedInTheBasicProfile() throws {
        let payload: NearbyPayload = ["k": .string(String(repeating: "x", count: 500))]
        try NearbyClient.Configuration(appId: "a", payload: payload).check()
        let error = #expect(throws: NearbyError.self) {
            try NearbyClient.Configuration(appId: "a", payload: payload, profile: .basic).check()
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
