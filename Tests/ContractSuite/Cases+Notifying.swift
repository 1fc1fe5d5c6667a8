// SPDX-License-Identifier: MIT

import BluetoothLE

extension ContractCase {
    static let notifying: [ContractCase] = [
        ContractCase("Notifications arrive in order") { bench in
            try await bench.withVisit { host, visit in
                let subscription = try await visit.connection.subscribe(to: visit.message)
                let values = Recorder(subscription.values, clock: bench.central.clock)
                let place = try await host.events.next(within: bench.patience, "subscribed") { $0.subscription }
                try require(place == Offer.messageID, "the characteristic: \(place)")
                for value in 1...20 as ClosedRange<UInt8> {
                    try await host.session.notify([value], on: Offer.messageID, to: nil)
                }
                for value in 1...20 as ClosedRange<UInt8> {
                    let received = try await values.next(within: bench.patience, "notification \(value)") { $0 }
                    try require(received == [value], "\(received) in place of \(value)")
                }
            }
        },
        ContractCase("Equal notifications arrive as often as they are sent") { bench in
            try await bench.withVisit { host, visit in
                let subscription = try await visit.connection.subscribe(to: visit.message)
                let values = Recorder(subscription.values, clock: bench.central.clock)
                _ = try await host.events.next(within: bench.patience, "subscribed") { $0.subscription }
                for _ in 1...2 { try await host.session.notify([7], on: Offer.messageID, to: nil) }
                for count in 1...2 {
                    _ = try await values.next(within: bench.patience, "notification \(count)") {
                        $0 == [7] ? true : nil
                    }
                }
            }
        },
        ContractCase("A notification that comes before subscribe has returned is kept") { bench in
            let react: @Sendable (PeripheralEvent, any PeripheralSession) async -> Void = { event, session in
                guard event.subscription != nil else { return }
                try? await session.notify([9], on: Offer.messageID, to: nil)
            }
            try await bench.withVisit(react: react) { _, visit in
                let subscription = try await visit.connection.subscribe(to: visit.message)
                // Late to read, on purpose.
                try await sleep(.seconds(1), bench.central.clock)
                let values = Recorder(subscription.values, clock: bench.central.clock)
                let value = try await values.next(within: bench.patience, "the early notification") { $0 }
                try require(value == [9], "the value: \(value)")
            }
        },
        ContractCase("A slow reader keeps the newest 1,024 values") { bench in
            try await bench.withVisit { host, visit in
                let subscription = try await visit.connection.subscribe(to: visit.message)
                // A second subscription, that is read at once, tells when all have arrived: with the value after the
                // last, since it may have each a moment before the first one.
                let witness = Recorder(
                    try await visit.connection.subscribe(to: visit.message).values,
                    clock: bench.central.clock
                )
                _ = try await host.events.next(within: bench.patience, "subscribed") { $0.subscription }
                for value in 1...1_041 as ClosedRange<UInt16> {
                    let bytes = [UInt8(value >> 8), UInt8(value & 0xFF)]
                    try await host.session.notify(bytes, on: Offer.messageID, to: nil)
                }
                _ = try await witness.next(within: bench.patience, "the last value") { $0 == [4, 17] ? true : nil }
                let values = Recorder(subscription.values, clock: bench.central.clock)
                let first = try await values.next(within: bench.patience, "a value") { $0 }
                try require(first == [0, 17] || first == [0, 18], "the first value: \(first)")
            }
        },
        ContractCase("What is longer than the MTU is cut off", needs: [.mtu]) { bench in
            try await bench.perform(.setMTU(64))
            try await bench.withVisit { host, visit in
                let subscription = try await visit.connection.subscribe(to: visit.message)
                let values = Recorder(subscription.values, clock: bench.central.clock)
                _ = try await host.events.next(within: bench.patience, "subscribed") { $0.subscription }
                if let mtu = await visit.connection.attMTU { try require(mtu == 64, "the MTU: \(mtu)") }
                try await host.session.notify(pattern(512), on: Offer.messageID, to: nil)
                let value = try await values.next(within: bench.patience, "the notification") { $0 }
                // 61, or 59 where the peer takes multiple-notification PDUs.
                try require([59, 61].contains(value.count), "\(value.count) bytes arrived")
                try require(value == pattern(value.count), "other bytes arrived")
            }
        },
        ContractCase("A notification needs a subscriber") { bench in
            try await bench.withVisit { host, _ in
                try await requireError(.notConnected, from: "a notification to nobody") {
                    try await host.session.notify([1], on: Offer.messageID, to: nil)
                }
            }
        },
        ContractCase("A notification has at most 512 bytes, and a characteristic") { bench in
            try await bench.withVisit { host, visit in
                _ = try await visit.connection.subscribe(to: visit.message)
                _ = try await host.events.next(within: bench.patience, "subscribed") { $0.subscription }
                try await requireError(.invalidArgument, from: "a notification of 513 bytes") {
                    try await host.session.notify(pattern(513), on: Offer.messageID, to: nil)
                }
                let nowhere = LocalCharacteristicID(service: 9, characteristic: 9)
                try await requireError(.invalidArgument, from: "a notification on nothing") {
                    try await host.session.notify([1], on: nowhere, to: nil)
                }
            }
        },
        ContractCase("What does not notify cannot be subscribed to") { bench in
            try await bench.withVisit { _, visit in
                try await requireError(.notSupported, .attributeError, from: "a subscription") {
                    try await visit.connection.subscribe(to: visit.text)
                }
            }
        },
        ContractCase("A cancelled subscription ends its stream, and is told to the peripheral") { bench in
            try await bench.withVisit { host, visit in
                let subscription = try await visit.connection.subscribe(to: visit.message)
                let values = Recorder(subscription.values, clock: bench.central.clock)
                _ = try await host.events.next(within: bench.patience, "subscribed") { $0.subscription }
                // bluetoothd does not tell of a central that leaves before it has read the answer to its AcquireNotify.
                try await host.session.notify([7], on: Offer.messageID, to: nil)
                _ = try await values.next(within: bench.patience, "the value") { $0 }
                await subscription.cancel()
                try await values.waitForEnd(within: bench.patience, "the end of the values")
                _ = try await host.events.next(within: bench.patience, "unsubscribed") { $0.unsubscription }
                try await requireError(.notConnected, from: "a notification to nobody") {
                    try await host.session.notify([1], on: Offer.messageID, to: nil)
                }
            }
        },
        ContractCase("A subscription ends with its link") { bench in
            try await bench.withVisit { host, visit in
                let subscription = try await visit.connection.subscribe(to: visit.message)
                let values = Recorder(subscription.values, clock: bench.central.clock)
                _ = try await host.events.next(within: bench.patience, "subscribed") { $0.subscription }
                await visit.connection.disconnect()
                try await values.waitForEnd(within: bench.patience, "the end of the values")
            }
        },
    ]

    static let sharing: [ContractCase] = [
        ContractCase("A second central finds the host while one is connected", needs: [.secondCentral]) { bench in
            let other = try bench.other
            try await bench.withVisit { _, _ in
                let visit = try await bench.visit(from: other)
                await visit.connection.disconnect()
            }
        },
        ContractCase("Two centrals are told apart, and each write is answered to its writer", needs: [.secondCentral]) {
            bench in
            let other = try bench.other
            let answers: Host.Answers = { event in event.writeRequest?.value == [2] ? .refuse(.application) : .accept }
            try await bench.withVisit(answers: answers) { host, first in
                let second = try await bench.visit(from: other)
                do {
                    try await first.connection.write([1], to: first.message, type: .withResponse)
                    try await requireError(.attributeError, from: "the second central's write") {
                        try await second.connection.write([2], to: second.message, type: .withResponse)
                    }
                    let one = try await host.events.next(within: bench.patience, "the first write") { $0.writeRequest }
                    let two = try await host.events.next(within: bench.patience, "the other write") { $0.writeRequest }
                    try require(one.central != two.central, "both writes come from \(one.central)")
                } catch {
                    await second.connection.disconnect()
                    throw error
                }
                await second.connection.disconnect()
            }
        },
        ContractCase("A notification reaches whom the radio's scope says", needs: [.secondCentral]) { bench in
            let other = try bench.other
            try await bench.withVisit { host, first in
                let second = try await bench.visit(from: other)
                do {
                    try await checkScope(bench, host, first, second)
                } catch {
                    await second.connection.disconnect()
                    throw error
                }
                await second.connection.disconnect()
            }
        },
    ]

    private static func checkScope(_ bench: ContractBench, _ host: Host, _ first: Visit, _ second: Visit) async throws {
        var readers: [Recorder<[UInt8]>] = []
        for visit in [first, second] {
            let subscription = try await visit.connection.subscribe(to: visit.message)
            readers.append(Recorder(subscription.values, clock: bench.central.clock))
        }
        try await first.connection.write([1], to: first.message, type: .withResponse)
        let central = try await host.events.next(within: bench.patience, "the write") { $0.writeRequest?.central }
        try await host.session.notify([1], on: Offer.messageID, to: central)
        try require(
            try await readers[0].next(within: bench.patience, "the notification") { $0 } == [1], "another value")
        switch bench.peripheral.notificationScope {
        case .central:
            try await readers[1].expectNone(for: bench.silence, "a notification for another") { _ in true }
        case .allSubscribers:
            _ = try await readers[1].next(within: bench.patience, "the broadcast") { $0 == [1] ? true : nil }
        }
        try await host.session.notify([2], on: Offer.messageID, to: nil)
        for reader in readers {
            _ = try await reader.next(within: bench.patience, "a notification for all") { $0 == [2] ? true : nil }
        }
    }
}
