// SPDX-License-Identifier: MIT

import BluetoothLE

extension ContractCase {
    static let scanning: [ContractCase] = [
        ContractCase("A scan reports what a device says about itself, how strongly it is heard, and when") { bench in
            try await bench.withHost { _ in
                let before = bench.central.clock.present
                let discovery = try await bench.find(from: bench.central)
                try require(
                    discovery.advertisement.serviceUUIDs.contains(Offer.service), "the advertised service: \(discovery)"
                )
                try require(discovery.time >= before, "the time is on the radio's clock: \(discovery)")
                if discovery.advertisement.localName != Offer.advertisement.localName {
                    // The scan response can come with a later report.
                    let scan = try await bench.central.scan(for: ScanFilter(services: [Offer.service]))
                    let events = Recorder(scan.events, clock: bench.central.clock)
                    _ = try await events.next(within: bench.patience, "the name") {
                        $0.discovery?.advertisement.localName == Offer.advertisement.localName ? true : nil
                    }
                    await scan.stop()
                }
            }
        },
        ContractCase("A scan reports a device again and again") { bench in
            try await bench.withHost { _ in
                let scan = try await bench.central.scan(for: ScanFilter(services: [Offer.service]))
                let events = Recorder(scan.events, clock: bench.central.clock)
                for report in 1...3 {
                    _ = try await events.next(within: bench.patience, "report \(report)") { $0.discovery }
                }
                await scan.stop()
            }
        },
        ContractCase("A scan for another service reports nothing") { bench in
            try await bench.withHost { _ in
                let scan = try await bench.central.scan(for: ScanFilter(services: [Offer.nowhere]))
                let events = Recorder(scan.events, clock: bench.central.clock)
                try await events.expectNone(for: bench.silence, "a report of another service") { $0.discovery != nil }
                await scan.stop()
            }
        },
        ContractCase("Two scans have each their own filter") { bench in
            try await bench.withHost { _ in
                let other = try await bench.central.scan(for: ScanFilter(services: [Offer.nowhere]))
                let others = Recorder(other.events, clock: bench.central.clock)
                _ = try await bench.find(from: bench.central)
                try await others.expectNone(for: .zero, "a report of another service") { $0.discovery != nil }
                await other.stop()
            }
        },
        ContractCase("A device below the RSSI asked for is left out until it comes near", needs: [.rssi]) { bench in
            try await bench.perform(.setRSSI(-80))
            try await bench.withHost { _ in
                let filter = ScanFilter(services: [Offer.service], minimumRSSI: -60)
                let scan = try await bench.central.scan(for: filter)
                let events = Recorder(scan.events, clock: bench.central.clock)
                try await events.expectNone(for: bench.silence, "a report below the threshold") { $0.discovery != nil }
                try await bench.perform(.setRSSI(-60))
                let discovery = try await events.next(within: bench.patience, "the device once near") { $0.discovery }
                try require(discovery.rssi == -60, "the RSSI: \(discovery)")
                await scan.stop()
            }
        },
        ContractCase("Without a threshold a report comes with whatever RSSI there is", needs: [.rssi]) { bench in
            for rssi in [-127, 127] {
                try await bench.perform(.setRSSI(rssi))
                try await bench.withHost { _ in
                    let discovery = try await bench.find(from: bench.central, "a report with the RSSI \(rssi)")
                    try require(discovery.rssi == nil || discovery.rssi == rssi, "the RSSI: \(discovery)")
                }
            }
        },
        ContractCase("A threshold leaves out reports without a reading", needs: [.rssi]) { bench in
            for rssi in [127, nil] as [Int?] {
                try await bench.perform(.setRSSI(rssi))
                try await bench.withHost { _ in
                    let filter = ScanFilter(services: [Offer.service], minimumRSSI: -90)
                    let scan = try await bench.central.scan(for: filter)
                    let events = Recorder(scan.events, clock: bench.central.clock)
                    try await events.expectNone(for: bench.silence, "a report without RSSI") { $0.discovery != nil }
                    await scan.stop()
                }
            }
        },
        ContractCase("A device that is heard no more is reported gone", needs: [.range]) { bench in
            try await bench.withHost { _ in
                let scan = try await bench.central.scan(for: ScanFilter(services: [Offer.service]))
                let events = Recorder(scan.events, clock: bench.central.clock)
                let peer = try await events.next(within: bench.patience, "a report") { $0.discovery?.peer }
                try await bench.perform(.setInRange(false))
                _ = try await events.next(within: .seconds(120), "gone") { $0 == .gone(peer) ? true : nil }
                await scan.stop()
                try await requireError(.peerNotFound, from: "a connect to it") {
                    try await bench.central.connect(to: peer, timeout: bench.patience)
                }
            }
        },
        ContractCase("A device that was connected to for one service is found by another that it offers since") {
            bench in
            try await bench.withVisit { _, _ in }
            let service = LocalService(Offer.laterService, characteristics: [LocalCharacteristic(Offer.text, .read)])
            let session = try await bench.peripheral.serve(
                [service], advertising: AdvertisementRequest(serviceUUIDs: [Offer.laterService]))
            let scan = try await bench.central.scan(for: ScanFilter(services: [Offer.laterService]))
            let events = Recorder(scan.events, clock: bench.central.clock)
            let discovery = try await events.next(within: bench.patience, "the device") { $0.discovery }
            let services = discovery.advertisement.serviceUUIDs
            try require(services.contains(Offer.laterService), "what it advertises: \(services)")
            await scan.stop()
            await session.stop()
        },
        ContractCase("A stopped scan ends its stream, and may be stopped again") { bench in
            let scan = try await bench.central.scan(for: ScanFilter())
            let events = Recorder(scan.events, clock: bench.central.clock)
            await scan.stop()
            try await events.waitForEnd(within: bench.patience, "the end of the events")
            await scan.stop()
        },
        ContractCase("A scan whose reader is cancelled is over, and another one works") { bench in
            try await bench.withHost { _ in
                let scan = try await bench.central.scan(for: ScanFilter(services: [Offer.service]))
                let events = Recorder(scan.events, clock: bench.central.clock)
                _ = try await events.next(within: bench.patience, "a report") { $0.discovery }
                await events.cancel()
                try await events.waitForEnd(within: bench.patience, "the end of the events")
                _ = try await bench.find(from: bench.central)
                await scan.stop()
            }
        },
        ContractCase("A cancelled task gets no scan") { bench in
            let radio = bench.central
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await radio.scan(for: ScanFilter())
            }
            try await requireError(.cancelled, from: "a scan") { try await task.value }
        },
    ]
}

extension MonotonicClock {
    /// `now` of a clock whose type is not known.
    var present: ContinuousClock.Instant { now }
}
