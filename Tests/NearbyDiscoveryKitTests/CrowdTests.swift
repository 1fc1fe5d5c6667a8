// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyDiscoveryKit
import SimulatedRadio
import Testing

/// Many clients at one host, on the manual clock.
@Suite struct CrowdTests {
    private static let appId = "com.example.crowd"

    private struct Crowd {
        let clock = ManualClock()
        let medium: SimulatedMedium
        let host: SimulatedRadio
        let phones: [SimulatedRadio]

        init(phones count: Int) {
            medium = SimulatedMedium(clock: clock, seed: 3)
            host = medium.addAdapter(name: "host")
            phones = (0..<count).map { [medium] in medium.addAdapter(name: "phone \($0)") }
        }
    }

    private enum End: Sendable, Equatable {
        case handoff(String)
        case rejected(RejectReason?)
        case failed(String)
    }

    @Test(arguments: [NotificationScope.allSubscribers, .central], ProfileChoice.allCases)
    func fiftyClientsAtOnceEachEndWithAHandoffOrBusy(scope: NotificationScope, profile: ProfileChoice) async throws {
        let crowd = Crowd(phones: 50)
        crowd.host.configuration.notificationScope = scope
        let host = try NearbyHost(NearbyHost.Configuration(appId: Self.appId), radio: crowd.host)
        let radios = crowd.phones
        let ends = try await crowd.clock.run {
            let running = Task {
                try await host.run { request in .handoff(["name": .string(request.payload?["name"] ?? "")]) }
            }
            let ends = await withTaskGroup(of: (Int, End).self) { group in
                for (index, radio) in radios.enumerated() {
                    group.addTask { (index, await Self.join(as: "client \(index)", from: radio, profile)) }
                }
                return await group.reduce(into: [Int: End]()) { $0[$1.0] = $1.1 }
            }
            running.cancel()
            _ = await running.result
            return ends
        }
        #expect(ends.count == 50)
        var handoffs = 0
        for (index, end) in ends {
            switch end {
            case .handoff(let name):
                handoffs += 1
                // Where every subscriber hears every notification, another client's basic answer cannot be told apart.
                if scope == .central || profile != .basic { #expect(name == "client \(index)") }
            case .rejected(let reason):
                #expect(reason == .busy)
            case .failed(let message):
                Issue.record("client \(index): \(message)")
            }
        }
        #expect(handoffs >= (profile == .basic ? 17 : 50))
        #expect(crowd.medium.links.isEmpty)
    }

    @Test func clientsOneAfterAnotherLeaveNothingBehind() async throws {
        let crowd = Crowd(phones: 1)
        let host = try NearbyHost(
            NearbyHost.Configuration(appId: Self.appId, maximumHandoffs: 100),
            radio: crowd.host
        )
        let phone = crowd.phones[0]
        try await crowd.clock.run {
            async let running: Void = host.run { _ in .handoff(["name": "same"]) }
            for _ in 0..<100 {
                #expect(await Self.join(as: "client", from: phone) == .handoff("same"))
            }
            try await running
        }
        #expect(crowd.medium.links.isEmpty)
    }

    private static func join(
        as name: String, from radio: SimulatedRadio, _ profile: ProfileChoice = .auto
    ) async -> End {
        do {
            let client = try NearbyClient(
                NearbyClient.Configuration(
                    appId: appId, payload: ["name": .string(name)], timeout: .seconds(120), profile: profile),
                radio: radio
            )
            let handoff = try await client.join()
            await client.finish()
            return .handoff(handoff.payload["name"] ?? "")
        } catch {
            if error.code == .rejected { return .rejected(error.rejection?.reason) }
            return .failed("\(error)")
        }
    }
}
