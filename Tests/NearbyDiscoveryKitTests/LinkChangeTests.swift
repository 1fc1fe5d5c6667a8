// SPDX-License-Identifier: MIT

import BluetoothLE
import NearbyDiscoveryKit
import SimulatedRadio
import Testing

/// Links that change or end in the middle of an extended exchange, on the manual clock.
@Suite struct LinkChangeTests {
    private static let appId = "com.example.links"
    private let clock = ManualClock()
    private let medium: SimulatedMedium
    private let host: SimulatedRadio
    private let phone: SimulatedRadio
    private let second: SimulatedRadio

    init() {
        medium = SimulatedMedium(clock: clock, seed: 11, conditions: Conditions(latency: .milliseconds(8)))
        host = medium.addAdapter(name: "host")
        phone = medium.addAdapter(name: "phone")
        second = medium.addAdapter(name: "second")
    }

    private static func client(_ radio: SimulatedRadio, _ name: String) throws(NearbyError) -> NearbyClient {
        try NearbyClient(
            NearbyClient.Configuration(appId: appId, payload: ["name": .string(name)], profile: .extended),
            radio: radio)
    }

    private static func join(_ radio: SimulatedRadio, as name: String) async -> Result<Handoff, NearbyError> {
        do throws(NearbyError) {
            let client = try client(radio, name)
            let handoff = try await client.join()
            await client.finish()
            return .success(handoff)
        } catch {
            return .failure(error)
        }
    }

    // MARK: The MTU

    /// When the stack of one side gets round to its MTU exchange.
    enum Moment: CaseIterable {
        case beforeHello, betweenTheMessages, betweenAnswerAndReceipt
    }

    @Test(arguments: Moment.allCases, [64, 185, 517])
    func theMTUMayGrowBetweenTwoMessages(_ moment: Moment, _ mtu: Int) async throws {
        let text = String(repeating: "t", count: 2_000)
        let (medium, radio, phone) = (medium, host, phone)
        medium.setMTU(23, between: radio, and: phone)
        let host = try NearbyHost(NearbyHost.Configuration(appId: Self.appId), radio: radio)
        let steps = try await clock.run { () -> [Int] in
            let events = host.events()
            let running = Task {
                try await host.run { _ in
                    if moment == .betweenTheMessages { medium.exchangeMTU(mtu, between: radio, and: phone) }
                    return .handoff(["text": .string(text)])
                }
            }
            let client = try Self.client(phone, "phone")
            let told = client.events()
            let watching = Task {
                for await event in told {
                    if case .connected = event, moment == .beforeHello {
                        medium.exchangeMTU(mtu, between: radio, and: phone)
                    }
                }
            }
            let joining = Task { try await client.join() }
            var (steps, before) = ([Int](), 0)
            for await event in events {
                if case .handedOff = event, moment == .betweenAnswerAndReceipt {
                    medium.exchangeMTU(mtu, between: radio, and: phone)
                }
                if case .progress(_, let bytes, _) = event {
                    steps.append(bytes - before)
                    before = bytes
                }
                if case .delivered = event { break }
            }
            let handoff = try await joining.value
            #expect(handoff.payload["text"] == text)
            await client.finish()
            await watching.value
            running.cancel()
            _ = await running.result
            return steps
        }
        // All but the last frame are full; some steps are two frames, or more where events were left out. What the host
        // has not heard of it does not use.
        let data = (moment == .beforeHello ? min(mtu - 5, 512) : 18) - 4
        #expect(steps.contains(data) && steps.dropLast().allSatisfy { $0.isMultiple(of: data) })
    }

    // MARK: A client that comes back

    @Test func aClientThatComesBackDoesNotGetTheOneHandoffThatAnotherIsPromised() async throws {
        let (medium, radio, phone, second) = (medium, host, phone, second)
        let host = try NearbyHost(
            NearbyHost.Configuration(appId: Self.appId, maximumHandoffs: 1), radio: radio)
        let (hasReturned, adaEnds) = AsyncStream.makeStream(of: Void.self)
        try await clock.run {
            let events = host.events()
            let running = Task {
                try await host.run { request in
                    if request.payload?["name"] == "ada" {
                        medium.drop(between: phone, and: radio)
                    } else {
                        // Bob is thought about until Ada has come back.
                        for await _ in hasReturned {}
                    }
                    return .handoff(["roomCode": "SWIFT42"])
                }
            }
            let ada = Task {
                defer { adaEnds.finish() }
                return await Self.join(phone, as: "ada")
            }
            var bob: Task<Result<Handoff, NearbyError>, Never>?
            var delivered = 0
            for await event in events {
                if case .failed = event, bob == nil { bob = Task { await Self.join(second, as: "bob") } }
                if case .delivered = event { delivered += 1 }
            }
            // The host has ended by itself.
            let ended = await running.result
            #expect((try? ended.get()) != nil)
            guard case .failure(let error) = await ada.value else {
                Issue.record("both got the one handoff")
                return
            }
            #expect(error.rejection?.reason == .busy)
            #expect(error.rejection?.security == .sealed)
            let bobs = await bob?.value
            #expect((try? bobs?.get())?.payload["roomCode"] == "SWIFT42")
            #expect(delivered == 1)
        }
    }
}
