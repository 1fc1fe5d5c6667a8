// SPDX-License-Identifier: MIT

import BluetoothLE

extension ContractCase {
    static let recovering: [ContractCase] = [
        ContractCase("The first status is the present one, and changes follow", needs: [.power]) { bench in
            let statuses = Recorder(bench.central.adapterStatuses(), clock: bench.central.clock)
            let first = try await statuses.next(within: bench.patience, "powered on") {
                $0.state == .poweredOn ? $0 : nil
            }
            try require(first.adapter != nil, "the adapter's name: \(first)")
            try await bench.perform(.setPower(false, .central))
            let off = try await statuses.next(within: bench.patience, "powered off") {
                $0.state == .poweredOff ? $0 : nil
            }
            try require(off.reason?.code == .poweredOff, "the reason: \(off)")
            try await bench.perform(.setPower(true, .central))
            _ = try await statuses.next(within: bench.patience, "powered on") { $0.state == .poweredOn ? $0 : nil }
            await statuses.cancel()
        },
        ContractCase("Nothing starts on an adapter that is off", needs: [.power]) { bench in
            for role in ContractRole.allCases { try await bench.perform(.setPower(false, role)) }
            try await requireError(.poweredOff, from: "a scan") { try await bench.central.scan(for: ScanFilter()) }
            try await requireError(.poweredOff, from: "serving") {
                try await bench.peripheral.serve(Offer.services, advertising: Offer.advertisement)
            }
            for role in ContractRole.allCases { try await bench.perform(.setPower(true, role)) }
        },
        ContractCase("A scan pauses while the adapter is off, and goes on", needs: [.power]) { bench in
            try await checkScan(bench) {
                try await bench.perform(.setPower(false, .central))
                return .setPower(true, .central)
            }
        },
        ContractCase("A scan outlives a restart of the Bluetooth service", needs: [.serviceRestart]) { bench in
            try await checkScan(bench) { .restartService(.central) }
        },
        ContractCase("A session is interrupted while the adapter is off, and serves again", needs: [.power]) { bench in
            try await checkSession(bench) {
                try await bench.perform(.setPower(false, .peripheral))
                return .setPower(true, .peripheral)
            }
        },
        ContractCase("A session outlives a restart of the Bluetooth service", needs: [.serviceRestart]) { bench in
            try await checkSession(bench) { .restartService(.peripheral) }
        },
        ContractCase("Switching the central's adapter off takes its link down", needs: [.power]) { bench in
            try await bench.withVisit { host, visit in
                try await bench.perform(.setPower(false, .central))
                let connection = visit.connection
                let reason = try await within(bench.patience, bench.central.clock, "the link's end") {
                    await connection.disconnection()
                }
                try require([.adapterLost, .local, .unknown].contains(reason), "the reason: \(reason)")
                _ = try await host.events.next(within: bench.patience, "disconnected") { $0.disconnected }
                try await bench.perform(.setPower(true, .central))
            }
        },
        ContractCase("Switching the peripheral's adapter off takes the central's link down", needs: [.power]) { bench in
            try await bench.withVisit { _, visit in
                try await bench.perform(.setPower(false, .peripheral))
                let connection = visit.connection
                let reason = try await within(bench.patience, bench.central.clock, "the link's end") {
                    await connection.disconnection()
                }
                try require([.remote, .timeout, .unknown].contains(reason), "the reason: \(reason)")
                try await bench.perform(.setPower(true, .peripheral))
            }
        },
        ContractCase("A restart of the central's service ends what is under way on its link", needs: [.serviceRestart])
        { bench in
            try await bench.withVisit(answers: { _ in nil }) { host, visit in
                let task = Task { try await visit.connection.write([1], to: visit.message, type: .withResponse) }
                _ = try await host.events.next(within: bench.patience, "the write") { $0.writeRequest }
                try await bench.perform(.restartService(.central))
                try await requireError(.resetting, .disconnected, .notConnected, from: "the write") {
                    try await task.value
                }
                try await requireError(.notConnected, .disconnected, .resetting, from: "a read") {
                    try await visit.connection.read(visit.text)
                }
            }
        },
        ContractCase("A handshake works again after both services have restarted", needs: [.serviceRestart]) { bench in
            try await bench.withHost { host in
                for role in ContractRole.allCases { try await bench.perform(.restartService(role)) }
                _ = try await host.events.next(within: bench.patience, "interrupted") { $0.isInterruption ? true : nil }
                let statuses = Recorder(bench.central.adapterStatuses(), clock: bench.central.clock)
                _ = try await statuses.next(within: bench.patience, "powered on") {
                    $0.state == .poweredOn ? true : nil
                }
                let visit = try await bench.visit(from: bench.central)
                try await visit.connection.write([1], to: visit.message, type: .withResponse)
                await visit.connection.disconnect()
                await statuses.cancel()
            }
        },
    ]

    /// - Parameter takeAway: Takes the adapter away, and says what brings it back.
    private static func checkScan(
        _ bench: ContractBench,
        takeAway: () async throws -> ContractIntervention
    ) async throws {
        try await bench.withHost { _ in
            let scan = try await bench.central.scan(for: ScanFilter(services: [Offer.service]))
            let events = Recorder(scan.events, clock: bench.central.clock)
            _ = try await events.next(within: bench.patience, "a report") { $0.discovery }
            let back = try await takeAway()
            if case .setPower = back {
                _ = try await events.next(within: bench.patience, "paused") { $0.isPause ? true : nil }
            }
            try await bench.perform(back)
            _ = try await events.next(within: bench.patience, "resumed") { $0 == .resumed ? true : nil }
            while await events.take({ $0.discovery }) != nil {}
            _ = try await events.next(within: bench.patience, "a report after the pause") { $0.discovery }
            await scan.stop()
            try await events.waitForEnd(within: bench.patience, "the end of the events")
        }
    }

    private static func checkSession(
        _ bench: ContractBench,
        takeAway: () async throws -> ContractIntervention
    ) async throws {
        try await bench.withHost { host in
            _ = try await host.events.next(within: bench.patience, "serving") { $0.isServing ? true : nil }
            let back = try await takeAway()
            if case .setPower = back {
                _ = try await host.events.next(within: bench.patience, "interrupted") { $0.isInterruption ? true : nil }
                try await requireError(.resetting, .notConnected, .poweredOff, from: "a notification meanwhile") {
                    try await host.session.notify([1], on: Offer.messageID, to: nil)
                }
            }
            try await bench.perform(back)
            _ = try await host.events.next(within: bench.patience, "serving again") { $0.isServing ? true : nil }
            let visit = try await bench.visit(from: bench.central)
            try await visit.connection.write([1], to: visit.message, type: .withResponse)
            await visit.connection.disconnect()
        }
    }

    static let ending: [ContractCase] = [
        ContractCase("A session stopped while the adapter is off leaves no services behind", needs: [.power]) { bench in
            try await bench.withHost { host in
                _ = try await host.events.next(within: bench.patience, "serving") { $0.isServing ? true : nil }
                try await bench.perform(.setPower(false, .peripheral))
                _ = try await host.events.next(within: bench.patience, "off") { $0.isInterruption ? true : nil }
            }
            let statuses = Recorder(bench.peripheral.adapterStatuses(), clock: bench.peripheral.clock)
            try await bench.perform(.setPower(true, .peripheral))
            _ = try await statuses.next(within: bench.patience, "powered on") { $0.state == .poweredOn ? $0 : nil }
            await statuses.cancel()
            try await bench.withVisit { _, visit in
                let found = visit.services.filter { $0.uuid == Offer.service }
                try require(found.count == 1, "the services: \(found)")
            }
        },
        // More often than an adapter has room for advertisements.
        ContractCase("A session serves again however often the adapter was off", needs: [.power]) { bench in
            try await bench.withHost { host in
                _ = try await host.events.next(within: bench.patience, "serving") { $0.isServing ? true : nil }
                for _ in 1...7 {
                    try await bench.perform(.setPower(false, .peripheral))
                    _ = try await host.events.next(within: bench.patience, "off") { $0.isInterruption ? true : nil }
                    try await bench.perform(.setPower(true, .peripheral))
                    let isFound = try await host.events.next(within: bench.patience, "serving again") { event in
                        if case .serving(let advertising, _) = event { advertising } else { nil }
                    }
                    try require(isFound, "the host can be found again")
                }
                _ = try await bench.find(from: bench.central)
            }
        },
        ContractCase("A stopped session ends its events, and nobody finds it") { bench in
            let host = try await Host(on: bench.peripheral)
            _ = try await bench.find(from: bench.central)
            await host.session.stop()
            try await host.events.waitForEnd(within: bench.patience, "the end of the events")
            await host.session.stop()
            let scan = try await bench.central.scan(for: ScanFilter(services: [Offer.service]))
            let events = Recorder(scan.events, clock: bench.central.clock)
            try await events.expectNone(for: bench.silence, "a stopped session") { $0.discovery != nil }
            await scan.stop()
            try await requireError(.notConnected, .invalidArgument, from: "a notification") {
                try await host.session.notify([1], on: Offer.messageID, to: nil)
            }
        },
        ContractCase("A session can be served again after it was stopped") { bench in
            for _ in 1...3 {
                try await bench.withVisit { _, visit in
                    try await visit.connection.write([1], to: visit.message, type: .withResponse)
                }
            }
        },
        ContractCase("An advertisement that does not fit is refused, with what is over") { bench in
            let request = AdvertisementRequest(serviceUUIDs: [Offer.service, Offer.pair])
            let error = try await requireError(.invalidArgument, .advertisingFailed, from: "serving") {
                try await bench.peripheral.serve(Offer.services, advertising: request)
            }
            try require(error.advice != nil, "there is advice: \(error)")
            try await bench.withVisit { _, _ in }
        },
        ContractCase("A session without an advertisement is not found") { bench in
            let session = try await bench.peripheral.serve(Offer.services, advertising: nil)
            let events = Recorder(session.events, clock: bench.peripheral.clock)
            _ = try await events.next(within: bench.patience, "serving") {
                $0 == .serving(advertising: false, degraded: nil) ? true : nil
            }
            let scan = try await bench.central.scan(for: ScanFilter(services: [Offer.service]))
            let reports = Recorder(scan.events, clock: bench.central.clock)
            try await reports.expectNone(for: bench.silence, "a report") { $0.discovery != nil }
            await scan.stop()
            await session.stop()
        },
        ContractCase("A cancelled task serves nothing") { bench in
            let radio = bench.peripheral
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await radio.serve(Offer.services, advertising: Offer.advertisement)
            }
            try await requireError(.cancelled, from: "serving") { try await task.value }
        },
    ]
}
