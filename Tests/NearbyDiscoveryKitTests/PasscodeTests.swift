// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyDiscoveryKit
import SimulatedRadio
import Testing

/// Guesses at a host with a passcode, on the manual clock.
@Suite struct PasscodeTests {
    private static let appId = "com.example.guarded"
    private let clock = ManualClock()
    private let host: SimulatedRadio
    private let phone: SimulatedRadio

    init() {
        let medium = SimulatedMedium(clock: clock, seed: 5)
        host = medium.addAdapter(name: "host")
        phone = medium.addAdapter(name: "phone")
    }

    private func join(_ passcode: String) async -> Result<Handoff, NearbyError> {
        do {
            let client = try NearbyClient(
                NearbyClient.Configuration(appId: Self.appId, security: .passcode(passcode)), radio: phone)
            let handoff = try await client.join()
            await client.finish()
            return .success(handoff)
        } catch {
            return .failure(error)
        }
    }

    private func serve<Value: Sendable>(_ body: @escaping @Sendable (NearbyHost) async throws -> Value) async throws
        -> Value
    {
        let host = try NearbyHost(
            NearbyHost.Configuration(appId: Self.appId, security: .passcode("48291357")), radio: self.host)
        return try await clock.run {
            let running = Task { try await host.run { _ in .handoff(["roomCode": "SWIFT42"]) } }
            let value = try await body(host)
            running.cancel()
            _ = await running.result
            return value
        }
    }

    @Test func aHostUnderAttackSaysSoKeepsAllOutAndRecovers() async throws {
        try await serve { host in
            let events = host.events()
            for number in 0..<20 {
                guard case .failure(let error) = await join("guess\(number)") else {
                    Issue.record("a guess was let in")
                    return
                }
                #expect(error.code == .wrongPasscode)
            }
            var attack: Duration?
            for await event in events {
                if case .underAttack(let retryAfter) = event {
                    attack = retryAfter
                    break
                }
            }
            // Each join takes a second of the 30.
            let wait = try #require(attack)
            #expect(wait > .zero && wait <= .seconds(30))
            guard case .failure(let error) = await join("48291357") else {
                Issue.record("the right passcode was let in")
                return
            }
            #expect(error.code == .rejected)
            #expect(error.rejection?.reason == .busy)
            #expect(try #require(error.rejection?.retryAfter) <= .seconds(30))
            try await clock.sleep(for: .seconds(30))
            #expect(try await join("48291357").get().security == .authenticated)
        }
    }

    @Test func aNewPasscodeCountsFromThenOn() async throws {
        try await serve { host in
            #expect(try await join("48291357").get().payload["roomCode"] == "SWIFT42")
            host.changePasscode(to: try Passcode("13579246"))
            guard case .failure(let error) = await join("48291357") else {
                Issue.record("the old passcode was let in")
                return
            }
            #expect(error.code == .wrongPasscode)
            #expect(try await join("13579246").get().security == .authenticated)
        }
    }
}
