// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import NearbyDiscoveryKit

/// Something that takes one side's stack away for a while.
struct Blow: Sendable {
    let name: String
    let ability: ContractAbility
    let strike: @Sendable (ContractBench, ContractRole) async throws -> Void

    static let all = [
        Blow(name: "a restart of the Bluetooth service", ability: .serviceRestart) { bench, role in
            try await bench.perform(.restartService(role))
        },
        Blow(name: "the adapter off and on", ability: .power) { bench, role in
            try await bench.perform(.setPower(false, role))
            try await bench.perform(.setPower(true, role))
        },
        Blow(name: "the adapter unplugged and back", ability: .plug) { bench, role in
            try await bench.perform(.setPlugged(false, role))
            try await bench.perform(.setPlugged(true, role))
        },
    ]
}

/// What became of something that was done where nothing can be thrown: while a host's app decides.
actor Aftermath {
    private var result: Result<Void, any Error>?

    func of(_ strike: @Sendable () async throws -> Void) async {
        do {
            try await strike()
            result = .success(())
        } catch {
            result = .failure(error)
        }
    }

    /// Checks that it was done.
    func check(_ what: String) throws {
        try require(result, "\(what): nobody came to do it").get()
    }
}

/// How far an exchange has come when the blow falls.
enum Step: String, CaseIterable, Sendable {
    case advertising, connected, subscribed, written, answered
}

/// How far a client has come when the blow falls on its own side.
enum ClientStep: String, CaseIterable, Sendable {
    case scanning, connecting, connected, requesting, deciding

    func isReached(by event: ClientEvent) -> Bool {
        switch (self, event) {
        case (.scanning, .scanning), (.connecting, .connecting), (.connected, .connected), (.requesting, .requesting):
            true
        default:
            false
        }
    }
}

extension ContractCase {
    static let outliving: [ContractCase] =
        Blow.all.flatMap { blow in
            Step.allCases.map { hostOutlives(blow, at: $0) } + ClientStep.allCases.map { clientOutlives(blow, at: $0) }
        } + [
            ContractCase("A lost link is made again, and the handoff arrives", needs: [.dropLink]) { bench in
                let asked = Counter()
                let drop = Aftermath()
                try await bench.withHost(
                    admit: { _ in
                        if await asked.next() == 1 { await drop.of { try await bench.perform(.dropLink) } }
                        return .handoff(["roomCode": "SWIFT42"])
                    }
                ) { _ in
                    try bench.requireRoom(try await bench.join())
                    try await drop.check("the link's end")
                }
            },
            ContractCase("A host that starts on an adapter that is off serves when it comes on", needs: [.power]) {
                bench in
                try await bench.perform(.setPower(false, .peripheral))
                let host = try await RunningHost.start(bench, waitingToServe: false)
                do {
                    _ = try await host.events.next(within: bench.patience, "unavailable") { $0.isUnavailable ? 1 : nil }
                    try await bench.perform(.setPower(true, .peripheral))
                    try bench.requireRoom(try await bench.join())
                } catch {
                    await host.stop()
                    throw error
                }
                await host.stop()
            },
            ContractCase("Roles that start without an adapter go on when one comes", needs: [.plug]) { bench in
                for role in ContractRole.allCases { try await bench.perform(.setPlugged(false, role)) }
                let host = try await RunningHost.start(bench, waitingToServe: false)
                let client = try NearbyClient(bench.configuration(), radio: bench.central)
                let events = Recorder(client.events(), clock: bench.central.clock)
                let join = Task { try await client.join() }
                do {
                    let reason = try await host.events.next(within: bench.patience, "unavailable") { event in
                        if case .unavailable(let error) = event { error } else { nil }
                    }
                    try require(reason.code == .adapterNotFound, "the host's reason: \(reason)")
                    _ = try await events.next(within: bench.patience, "unavailable") { event in
                        if case .unavailable(let error) = event { error } else { nil }
                    }
                    for role in ContractRole.allCases { try await bench.perform(.setPlugged(true, role)) }
                    try bench.requireRoom(try await join.value)
                    await client.finish()
                } catch {
                    join.cancel()
                    await host.stop()
                    throw error
                }
                await host.stop()
            },
            ContractCase("A client that starts on an adapter that is off joins when it comes on", needs: [.power]) {
                bench in
                try await bench.withHost { _ in
                    try await bench.perform(.setPower(false, .central))
                    let client = try NearbyClient(bench.configuration(), radio: bench.central)
                    let events = Recorder(client.events(), clock: bench.central.clock)
                    let join = Task { try await client.join() }
                    _ = try await events.next(within: bench.patience, "unavailable") { event in
                        if case .unavailable(let error) = event { error } else { nil }
                    }
                    try await bench.perform(.setPower(true, .central))
                    try bench.requireRoom(try await join.value)
                    await client.finish()
                }
            },
            ContractCase("Roles that do not wait say that the adapter is off", needs: [.power]) { bench in
                for role in ContractRole.allCases { try await bench.perform(.setPower(false, role)) }
                var configuration = bench.configuration()
                configuration.whenUnavailable = .fail(after: .seconds(1))
                let error = try await requireNearbyError(.poweredOff, from: "the join") {
                    try await bench.join(configuration)
                }
                try require(error.advice != nil || error.cause?.advice != nil, "the advice: \(error)")
                let host = try NearbyHost(
                    NearbyHost.Configuration(appId: Suite.appId, whenUnavailable: .fail(after: .seconds(1))),
                    radio: bench.peripheral
                )
                try await requireNearbyError(.poweredOff, from: "the host") { try await host.run() }
                for role in ContractRole.allCases { try await bench.perform(.setPower(true, role)) }
            },
        ]

    /// The blow falls on the host's side while a bare client has come as far as `step`; then a client joins.
    private static func hostOutlives(_ blow: Blow, at step: Step) -> ContractCase {
        ContractCase("A host serves again after \(blow.name), when \(step.rawValue)", needs: [blow.ability]) { bench in
            try await bench.withHost { host in
                if step == .advertising {
                    try await blow.strike(bench, .peripheral)
                } else {
                    let client = try await RawClient.connect(bench, from: bench.central)
                    var answers: Recorder<[UInt8]>?
                    if step != .connected { answers = try await client.subscribe() }
                    if step == .written || step == .answered { try await client.write(Suite.request()) }
                    if step == .answered, let answers { _ = try await client.answer(from: answers) }
                    try await blow.strike(bench, .peripheral)
                    await client.connection.disconnect()
                }
                _ = try await host.events.next(within: bench.patience, "unavailable") { $0.isUnavailable ? 1 : nil }
                _ = try await host.events.next(within: bench.patience, "serving again") { $0.isServing ? 1 : nil }
                try bench.requireRoom(try await bench.join())
            }
        }
    }

    /// The blow falls on the client's side when it has come as far as `step`; it gets its handoff all the same.
    private static func clientOutlives(_ blow: Blow, at step: ClientStep) -> ContractCase {
        ContractCase("A client gets its handoff in spite of \(blow.name), when \(step.rawValue)", needs: [blow.ability])
        {
            bench in
            let asked = Counter()
            let aftermath = Aftermath()
            try await bench.withHost(
                admit: { _ in
                    // A task of its own: the decision is cancelled when its client goes, the blow goes on.
                    if step == .deciding, await asked.next() == 1 {
                        await Task { await aftermath.of { try await blow.strike(bench, .central) } }.value
                    }
                    return .handoff(["roomCode": "SWIFT42"])
                }
            ) { _ in
                let client = try NearbyClient(bench.configuration(), radio: bench.central)
                let events = Recorder(client.events(), clock: bench.central.clock)
                let join = Task { try await client.join() }
                if step != .deciding {
                    _ = try await events.next(within: bench.patience, step.rawValue) {
                        step.isReached(by: $0) ? 1 : nil
                    }
                    try await blow.strike(bench, .central)
                }
                try bench.requireRoom(try await join.value)
                if step == .deciding { try await aftermath.check(blow.name) }
                await client.finish()
            }
        }
    }
}
