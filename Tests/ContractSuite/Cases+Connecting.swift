// SPDX-License-Identifier: MIT

import BluetoothLE

extension ContractCase {
    static let connecting: [ContractCase] = [
        ContractCase("Both ends learn of a link, and of its end by the central") { bench in
            try await bench.withVisit { host, visit in
                let central = try await host.events.next(within: bench.patience, "connected") { $0.connected }
                try require(visit.connection.peer.rawValue.isEmpty == false, "the peer has a name")
                await visit.connection.disconnect()
                let reason = await visit.connection.disconnection()
                try require([.local, .unknown].contains(reason), "the reason: \(reason)")
                _ = try await host.events.next(within: bench.patience, "disconnected") {
                    $0.disconnected == central ? true : nil
                }
            }
        },
        ContractCase("The central learns that the peripheral took the link down") { bench in
            try await bench.withVisit { host, visit in
                let central = try await host.events.next(within: bench.patience, "connected") { $0.connected }
                await host.session.disconnect(central)
                let connection = visit.connection
                let reason = try await within(bench.patience, bench.central.clock, "the link's end") {
                    await connection.disconnection()
                }
                try require([.remote, .unknown].contains(reason), "the reason: \(reason)")
            }
        },
        ContractCase("A lost link ends in a time-out at the central, and is told to the peripheral", needs: [.dropLink])
        { bench in
            try await bench.withVisit { host, visit in
                try await bench.perform(.dropLink)
                let connection = visit.connection
                let reason = try await within(bench.patience, bench.central.clock, "the link's end") {
                    await connection.disconnection()
                }
                try require([.timeout, .unknown].contains(reason), "the reason: \(reason)")
                _ = try await host.events.next(within: bench.patience, "disconnected") { $0.disconnected }
                try await requireError(.notConnected, .disconnected, from: "a read") {
                    try await connection.read(visit.text)
                }
            }
        },
        ContractCase("A link that ends in the middle of an operation ends the operation", needs: [.dropLink]) { bench in
            try await bench.withVisit(answers: { _ in nil }) { host, visit in
                let written = Task { try await visit.connection.write([1], to: visit.message, type: .withResponse) }
                _ = try await host.events.next(within: bench.patience, "the write") { $0.writeRequest }
                try await bench.perform(.dropLink)
                try await requireError(.disconnected, .notConnected, from: "the write") { try await written.value }
            }
        },
        ContractCase("Nobody connects to a device that no scan has reported") { bench in
            try await requireError(.peerNotFound, .invalidArgument, from: "a connect") {
                try await bench.central.connect(to: PeerIdentifier("nobody"), timeout: bench.patience)
            }
        },
        ContractCase("A connect to a device that has vanished fails in time", needs: [.range]) { bench in
            try await bench.withHost { _ in
                let peer = try await bench.find(from: bench.central).peer
                try await bench.perform(.setInRange(false))
                let start = bench.central.clock.present
                try await requireError(.timedOut, .connectionFailed, .peerNotFound, from: "a connect") {
                    try await bench.central.connect(to: peer, timeout: .seconds(5))
                }
                let taken = start.duration(to: bench.central.clock.present)
                try require(taken <= .seconds(8), "the connect took \(taken) in place of 5 s")
            }
        },
        ContractCase("A cancelled connect leaves no link, and the next one succeeds", needs: [.range]) { bench in
            try await bench.withHost { host in
                let peer = try await bench.find(from: bench.central).peer
                try await bench.perform(.setInRange(false))
                let radio = bench.central
                let task = Task { try await radio.connect(to: peer, timeout: .seconds(20)) }
                try await sleep(.milliseconds(500), radio.clock)
                task.cancel()
                try await requireError(.cancelled, from: "the connect") { try await task.value }
                try await bench.perform(.setInRange(true))
                try await host.events.expectNone(for: bench.silence, "a link of a cancelled connect") {
                    $0.connected != nil
                }
                let visit = try await bench.visit(from: radio)
                await visit.connection.disconnect()
            }
        },
        ContractCase("A link may be taken down twice, and nothing works on it then") { bench in
            try await bench.withVisit { _, visit in
                await visit.connection.disconnect()
                await visit.connection.disconnect()
                try await requireError(.notConnected, .disconnected, from: "a read") {
                    try await visit.connection.read(visit.text)
                }
                try await requireError(.notConnected, .disconnected, from: "a write") {
                    try await visit.connection.write([1], to: visit.message, type: .withResponse)
                }
                try await requireError(.notConnected, .disconnected, from: "a subscription") {
                    try await visit.connection.subscribe(to: visit.message)
                }
                try await requireError(.notConnected, .disconnected, from: "a discovery") {
                    try await visit.connection.discoverServices()
                }
            }
        },
        ContractCase("Who waits for a link's end can be cancelled") { bench in
            try await bench.withVisit { _, visit in
                let connection = visit.connection
                let task = Task { await connection.disconnection() }
                task.cancel()
                let reason = try await within(bench.patience, bench.central.clock, "the return") { await task.value }
                try require(reason == .local, "the reason: \(reason)")
            }
        },
        ContractCase("The same device can be visited again") { bench in
            try await bench.withHost { _ in
                for _ in 1...3 {
                    let visit = try await bench.visit(from: bench.central)
                    await visit.connection.disconnect()
                }
            }
        },
    ]

    static let discovering: [ContractCase] = [
        ContractCase("Discovery finds all services with their characteristics and properties") { bench in
            try await bench.withVisit { _, visit in
                let found = visit.services.filter { [Offer.service, Offer.pair].contains($0.uuid) }
                try require(found.map(\.uuid) == [Offer.service, Offer.pair], "the services: \(found)")
                for (remote, local) in zip(found, Offer.services) {
                    try require(
                        remote.characteristics.map(\.uuid) == local.characteristics.map(\.uuid),
                        "the characteristics: \(remote)")
                    for (remote, local) in zip(remote.characteristics, local.characteristics) {
                        try require(remote.properties.isSuperset(of: local.properties), "the properties: \(remote)")
                    }
                }
            }
        },
        ContractCase("Two services of one UUID are told apart") { bench in
            let services = Offer.services + [Offer.services[0]]
            let session = try await bench.peripheral.serve(services, advertising: Offer.advertisement)
            do {
                let visit = try await bench.visit(from: bench.central)
                let found = visit.services.filter { $0.uuid == Offer.service }
                await visit.connection.disconnect()
                try require(found.count == 2 && Set(found.map(\.id)).count == 2, "the services: \(found)")
                let names = found.flatMap(\.characteristics).map(\.id)
                try require(Set(names).count == names.count, "the characteristics: \(found)")
            } catch {
                await session.stop()
                throw error
            }
            await session.stop()
        },
        ContractCase("Two characteristics of one UUID are told apart") { bench in
            let answers: Host.Answers = { event in
                guard let place = event.readRequest?.characteristic else { return Host.agreeable(event) }
                return .value([UInt8(place.characteristic)])
            }
            try await bench.withVisit(answers: answers) { _, visit in
                let pair = try require(visit.services.first { $0.uuid == Offer.pair }, "the service")
                for (index, characteristic) in pair.characteristics.enumerated() {
                    let value = try await visit.connection.read(characteristic)
                    try require(value == [UInt8(index)], "twin \(index) gave \(value)")
                }
            }
        },
        ContractCase("Discovery waits a second for a characteristic that is not there, and gives what there is") {
            bench in
            try await bench.withVisit { _, visit in
                let start = bench.central.clock.present
                let services = try await visit.connection.discoverServices(awaiting: Offer.nowhere)
                let taken = start.duration(to: bench.central.clock.present)
                try require(services.contains { $0.uuid == Offer.service }, "the services: \(services)")
                try require(taken >= .milliseconds(900), "it waited for \(taken)")
            }
        },
    ]
}
