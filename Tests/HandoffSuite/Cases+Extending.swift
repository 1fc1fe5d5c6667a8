// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import NearbyDiscoveryKit

/// What became of a join, as far as a case looks at it.
private enum End: Equatable, Sendable {
    case handoff(MessageSecurity)
    case failed(NearbyError.Code)
}

extension ContractCase {
    /// Both profiles, passcodes, large payloads, and requests that come again.
    static let extending: [ContractCase] =
        choosingProfiles + usingPasscodes + carryingMore + askingAgain

    // MARK: Profiles

    private static let choosingProfiles: [ContractCase] = [
        profiles(.auto, .auto, .handoff(.sealed)),
        profiles(.auto, .basic, .handoff(.plaintext)),
        profiles(.auto, .extended, .handoff(.sealed)),
        profiles(.basic, .auto, .handoff(.plaintext)),
        profiles(.basic, .extended, .failed(.securityRequired)),
        profiles(.extended, .auto, .handoff(.sealed)),
        profiles(.extended, .basic, .failed(.securityRequired)),
    ]

    private static func profiles(_ host: ProfileChoice, _ client: ProfileChoice, _ end: End) -> ContractCase {
        ContractCase("A client that speaks \(client) at a host that serves \(host)") { bench in
            let configuration = NearbyHost.Configuration(appId: Suite.appId, name: "suite", profile: host)
            try await bench.withHost(configuration) { _ in
                let timeout = end == .failed(.securityRequired) ? bench.silence * 5 : nil
                let met = try await bench.end(bench.configuration(timeout: timeout, profile: client))
                try require(met == end, "the end: \(met)")
            }
        }
    }

    // MARK: Passcodes

    private static let passcode = "482913"

    private static func guarded(_ name: String = "suite") -> NearbyHost.Configuration {
        NearbyHost.Configuration(appId: Suite.appId, name: name, security: .passcode(passcode))
    }

    private static let usingPasscodes: [ContractCase] = [
        ContractCase("The right passcode: sealed, authenticated, and the app is told") { bench in
            let told = Recorded<MessageSecurity>()
            try await bench.withHost(
                guarded(),
                admit: { request in
                    await told.add(request.security)
                    return .handoff(["roomCode": "SWIFT42"])
                }
            ) { _ in
                let handoff = try await bench.join(bench.configuration(security: .passcode(passcode)))
                try bench.requireRoom(handoff)
                try require(handoff.security == .authenticated, "the client's: \(handoff.security)")
                let apps = await told.all
                try require(apps == [.authenticated], "the app's: \(apps)")
            }
        },
        ContractCase("A wrong passcode is turned away before the app is asked, and the right one after it joins") {
            bench in
            let asked = Counter()
            try await bench.withHost(
                guarded(),
                admit: { _ in
                    _ = await asked.next()
                    return .handoff(["roomCode": "SWIFT42"])
                }
            ) { host in
                let error = try await requireNearbyError(.wrongPasscode, from: "the join") {
                    try await bench.join(bench.configuration(security: .passcode("111111")))
                }
                try require(error.advice != nil, "the advice: \(error)")
                try require(!"\(error)".contains("111111"), "the error shows the passcode: \(error)")
                let reason = try await host.events.next(within: bench.patience, "the app is told") { $0.rejection }
                try require(reason == .unauthorized, "the host's event: \(reason)")
                try bench.requireRoom(try await bench.join(bench.configuration(security: .passcode(passcode))))
                try require(await asked.next() == 2, "the app was asked once")
            }
        },
        ContractCase("Without the passcode a client is told at once, and the host's app is not asked") { bench in
            try await bench.withHost(guarded(), admit: { _ in .reject(message: "was asked") }) { _ in
                // Not first when the search's own time is over.
                try await within(bench.patience, bench.central.clock, "the client is told") {
                    _ = try await requireNearbyError(.securityRequired, from: "the join") { try await bench.join() }
                }
            }
        },
        ContractCase("A basic request at a host with a passcode is rejected: security_required") { bench in
            try await bench.withRawClient(guarded(), admit: { _ in .reject(message: "was asked") }) { _, client in
                let answer = try await client.ask(Suite.request())
                try require(answer.rejection?.reason == .securityRequired, "the answer: \(answer)")
            }
        },
        ContractCase("A client with a passcode tells nothing to a host that wants none") { bench in
            try await bench.withHost(admit: { _ in .reject(message: "was asked") }) { _ in
                try await requireNearbyError(.securityRequired, from: "the join") {
                    try await bench.join(
                        bench.configuration(timeout: bench.silence * 2, security: .passcode(passcode))
                    )
                }
            }
        },
        ContractCase("A client with a passcode writes nothing to a host without the extended profile") { bench in
            let written = Recorded<Int>()
            let react: @Sendable (WriteRequest) -> RawHost.Reaction = { request in
                Task { await written.add(request.value.count) }
                return .init(notifications: [Suite.handoff("SWIFT42")])
            }
            _ = try await RawHost.serving(on: bench.peripheral, react: react) { _ in
                try await requireNearbyError(.securityRequired, from: "the join") {
                    try await bench.join(
                        bench.configuration(timeout: bench.silence * 2, security: .passcode(passcode))
                    )
                }
            }
            let sizes = await written.all
            try require(sizes.isEmpty, "written: \(sizes)")
        },
        ContractCase("Two clients with the passcode at once each get their own payload", needs: [.secondCentral]) {
            bench in
            try await bench.withHost(
                guarded(),
                admit: { request in .handoff(["roomCode": .string(request.payload?["name"] ?? "nobody")]) }
            ) { _ in
                let other = try bench.other
                let configurations = ["ada", "bob"].map {
                    bench.configuration(payload: ["name": .string($0)], security: .passcode(passcode))
                }
                async let first = bench.join(configurations[0])
                async let second = bench.join(configurations[1], from: other)
                let (ada, bob) = try await (first, second)
                try bench.requireRoom(ada, "ada")
                try bench.requireRoom(bob, "bob")
            }
        },
    ]

    // MARK: Size

    private static let carryingMore: [ContractCase] = [
        ContractCase("64 KiB arrive whole, and both sides see them come") { bench in
            let payload = Self.payload(filling: ProtocolLimits.extendedEnvelopeBytes)
            let host = NearbyHost.Configuration(appId: Suite.appId, sessionId: "session", name: "suite")
            try await bench.withHost(host, admit: { _ in .handoff(payload) }) { host in
                let client = try NearbyClient(bench.configuration(), radio: bench.central)
                let progress = Recorder(client.events(), clock: bench.central.clock)
                let handoff = try await client.join()
                await client.finish()
                try require(handoff.payload == payload, "the payload came as it went")
                let received = try await progress.next(within: bench.patience, "the client's progress") { event in
                    if case .progress(_, let bytes) = event { bytes } else { nil }
                }
                try require(received > 0, "received: \(received)")
                let (sent, total) = try await host.events.next(within: bench.patience, "the host's progress") { event in
                    if case .progress(_, let bytes, let total) = event { (bytes, total) } else { nil }
                }
                try require(sent > 0 && total >= ProtocolLimits.extendedEnvelopeBytes, "sent: \(sent) of \(total)")
                _ = try await host.events.next(within: bench.patience, "delivered") { $0.delivered }
            }
        },
        ContractCase("A handoff one byte over the limit is refused, and the app is told by how much") { bench in
            let payload = Self.payload(filling: ProtocolLimits.extendedEnvelopeBytes + 1)
            let host = NearbyHost.Configuration(appId: Suite.appId, sessionId: "session", name: "suite")
            try await bench.withHost(host, admit: { _ in .handoff(payload) }) { host in
                let error = try await requireNearbyError(.rejected, from: "the join") { try await bench.join() }
                try require(error.rejection?.reason == .tooLarge, "the reason: \(error)")
                try require(error.rejection?.security == .sealed, "nobody else said it: \(error)")
                let failure = try await host.events.next(within: bench.patience, "the app is told") { $0.failure }
                try require(failure.message.contains(", 1 over the 65536"), "the app's error: \(failure)")
            }
        },
        ContractCase("A join request of 20,000 bytes reaches the app") { bench in
            let note = String(repeating: "n", count: 20_000)
            try await bench.withHost(
                admit: { request in
                    .handoff(["roomCode": .string(request.payload?["note"] == note ? "SWIFT42" : "cut")])
                }
            ) { _ in
                try bench.requireRoom(try await bench.join(bench.configuration(payload: ["note": .string(note)])))
            }
        },
        ContractCase("At an ATT MTU of 23 everything still works", needs: [.mtu]) { bench in
            try await bench.perform(.setMTU(23))
            let payload: NearbyPayload = ["roomCode": "SWIFT42", "text": .string(String(repeating: "t", count: 2_000))]
            try await bench.withHost(guarded(), admit: { _ in .handoff(payload) }) { _ in
                let handoff = try await bench.join(bench.configuration(security: .passcode(passcode)))
                try require(handoff.payload == payload, "the payload came as it went")
            }
        },
    ]

    private static func payload(filling size: Int) -> NearbyPayload {
        func payload(_ count: Int) -> NearbyPayload { ["text": .string(String(repeating: "t", count: count))] }
        let empty = Envelope.handoff(appId: Suite.appId, sessionId: "session", payload: payload(0).object).encoded()
        return payload(size - empty.count)
    }

    // MARK: Asking again

    private static let askingAgain: [ContractCase] =
        [
            ContractCase(
                "A link lost before the handoff: the same answer, and the app is asked once", needs: [.dropLink]
            ) {
                bench in
                let asked = Counter()
                let drop = Aftermath()
                try await bench.withHost(
                    admit: { _ in
                        let number = await asked.next()
                        await drop.of { try await bench.perform(.dropLink) }
                        return .handoff(["roomCode": .string("room \(number)")])
                    }
                ) { _ in
                    try bench.requireRoom(try await bench.join(), "room 1")
                    try await drop.check("the link's end")
                    try require(await asked.next() == 2, "the app was asked once")
                }
            },
            ContractCase("Another join is another request, and the app is asked again") { bench in
                let asked = Counter()
                try await bench.withHost(
                    admit: { _ in .handoff(["roomCode": .string("room \(await asked.next())")]) }
                ) { _ in
                    try bench.requireRoom(try await bench.join(), "room 1")
                    try bench.requireRoom(try await bench.join(), "room 2")
                }
            },
            ContractCase("A host of one handoff whose client loses its link still hands it over", needs: [.dropLink]) {
                bench in
                let configuration = NearbyHost.Configuration(appId: Suite.appId, name: "once", maximumHandoffs: 1)
                let asked = Counter()
                let drop = Aftermath()
                let host = try await RunningHost.start(
                    bench,
                    configuration,
                    admit: { _ in
                        if await asked.next() == 1 { await drop.of { try await bench.perform(.dropLink) } }
                        return .handoff(["roomCode": "SWIFT42"])
                    }
                )
                do {
                    try bench.requireRoom(try await bench.join())
                    try await drop.check("the link's end")
                    try await within(bench.patience, bench.peripheral.clock, "the host's end") { await host.run.value }
                        .get()
                } catch {
                    await host.stop()
                    throw error
                }
            },
            ContractCase("A host that is stopped tells the clients that wait, sealed") { bench in
                let asked = Gate()
                let clock = bench.peripheral.clock
                let host = try await RunningHost.start(
                    bench,
                    admit: { _ in
                        await asked.open()
                        try? await clock.sleep(until: clock.now.advanced(by: .seconds(9)), tolerance: nil)
                        return .handoff([:])
                    }
                )
                let join = Task { try await bench.join() }
                do {
                    try await within(bench.patience, bench.central.clock, "the app is asked") { await asked.wait() }
                    await host.stop()
                    let error = try await requireNearbyError(.rejected, from: "the join") { try await join.value }
                    try require(error.rejection?.reason == .sessionEnded, "the reason: \(error)")
                    try require(error.rejection?.security == .sealed, "nobody else said it: \(error)")
                } catch {
                    await host.stop()
                    throw error
                }
            },
        ] + Blow.all.map { outlivesInTheMiddle($0) }

    /// The blow falls on the host's side while a large handoff is on its way.
    private static func outlivesInTheMiddle(_ blow: Blow) -> ContractCase {
        ContractCase("A large handoff arrives in spite of \(blow.name) on the way", needs: [blow.ability]) { bench in
            let payload = payload(filling: 20_000)
            let asked = Counter()
            try await bench.withHost(
                admit: { _ in
                    _ = await asked.next()
                    return .handoff(payload)
                }
            ) { host in
                let struck = Task {
                    _ = try await host.events.next(within: bench.patience, "the handoff is on its way") { event in
                        if case .progress = event { true } else { nil }
                    }
                    try await blow.strike(bench, .peripheral)
                }
                let handoff = try await bench.join()
                try await struck.value
                try require(handoff.payload == payload, "the payload came as it went")
                try require(await asked.next() == 2, "the app was asked once")
            }
        }
    }
}

extension ContractBench {
    fileprivate func end(_ configuration: NearbyClient.Configuration) async throws -> End {
        do {
            let handoff = try await join(configuration)
            try requireRoom(handoff)
            return .handoff(handoff.security)
        } catch let error as NearbyError {
            return .failed(error.code)
        }
    }
}

/// Values in the order in which they came.
private actor Recorded<Value: Sendable> {
    private(set) var all: [Value] = []

    func add(_ value: Value) { all.append(value) }
}
