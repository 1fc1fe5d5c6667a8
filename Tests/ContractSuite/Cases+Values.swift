// SPDX-License-Identifier: MIT

import BluetoothLE

extension ContractCase {
    static let reading: [ContractCase] = [
        ContractCase("A read gives what the peripheral answers") { bench in
            try await bench.withVisit(answers: Host.telling([1, 2, 3])) { host, visit in
                let value = try await visit.connection.read(visit.text)
                try require(value == [1, 2, 3], "the value: \(value)")
                let request = try await host.events.next(within: bench.patience, "the read") { $0.readRequest }
                try require(request.characteristic == Offer.textID && request.offset == 0, "the request: \(request)")
            }
        },
        ContractCase("A value of nothing can be read") { bench in
            try await bench.withVisit { _, visit in
                let value = try await visit.connection.read(visit.text)
                try require(value.isEmpty, "the value: \(value)")
            }
        },
        ContractCase("A value longer than a PDU is read in slices, by offset", needs: [.mtu]) { bench in
            try await bench.perform(.setMTU(64))
            for length in [62, 63, 64, 126, 200, 512] {
                let text = pattern(length)
                try await bench.withVisit(answers: Host.telling(text)) { host, visit in
                    let value = try await visit.connection.read(visit.text)
                    try require(value == text, "\(length) bytes came as \(value.count)")
                    guard length >= 63 else { return }
                    _ = try await host.events.next(within: bench.patience, "a read at an offset") {
                        $0.readRequest.flatMap { $0.offset > 0 ? $0 : nil }
                    }
                }
            }
        },
        ContractCase("A refused read says the peripheral's ATT error") { bench in
            try await bench.withVisit(answers: { _ in .refuse(.insufficientAuthorization) }) { _, visit in
                let error = try await requireError(.attributeError, from: "the read") {
                    try await visit.connection.read(visit.text)
                }
                try require(error.att == .insufficientAuthorization, "the ATT error: \(String(describing: error.att))")
            }
        },
        ContractCase("A characteristic that cannot be read is not read") { bench in
            try await bench.withVisit { _, visit in
                try await requireError(.notSupported, .attributeError, from: "the read") {
                    try await visit.connection.read(visit.message)
                }
            }
        },
    ]

    static let writing: [ContractCase] = [
        ContractCase("A write reaches the peripheral with its sender, and returns when it is accepted") { bench in
            try await bench.withVisit { host, visit in
                try await visit.connection.write([4, 5], to: visit.message, type: .withResponse)
                let central = try await host.events.next(within: bench.patience, "connected") { $0.connected }
                let request = try await host.events.next(within: bench.patience, "the write") { $0.writeRequest }
                try require(
                    request.value == [4, 5] && request.central == central && request.characteristic == Offer.messageID
                        && request.offset == 0, "the request: \(request)")
            }
        },
        ContractCase("A write of nothing is a write") { bench in
            try await bench.withVisit { host, visit in
                try await visit.connection.write([], to: visit.message, type: .withResponse)
                let request = try await host.events.next(within: bench.patience, "the write") { $0.writeRequest }
                try require(request.value.isEmpty, "the request: \(request)")
            }
        },
        ContractCase("A write without response reaches the peripheral") { bench in
            try await bench.withVisit { host, visit in
                try await visit.connection.write([6], to: visit.command, type: .withoutResponse)
                let request = try await host.events.next(within: bench.patience, "the write") { $0.writeRequest }
                try require(
                    request.value == [6] && request.characteristic == Offer.commandID, "the request: \(request)")
            }
        },
        ContractCase("A refused write says the peripheral's ATT error") { bench in
            try await bench.withVisit(answers: { _ in .refuse(.application) }) { _, visit in
                let error = try await requireError(.attributeError, from: "the write") {
                    try await visit.connection.write([1], to: visit.message, type: .withResponse)
                }
                try require(error.att == .application, "the ATT error: \(String(describing: error.att))")
            }
        },
        ContractCase("A long write arrives whole or in parts that follow one another", needs: [.mtu]) { bench in
            for (mtu, length) in [(23, 21), (64, 200), (64, 510), (517, 510)] {
                try await bench.perform(.setMTU(mtu))
                try await checkWrite(of: length, bench)
            }
        },
        ContractCase("512 bytes can be written") { bench in
            try await checkWrite(of: 512, bench)
        },
        ContractCase("513 bytes are refused before they are sent") { bench in
            try await bench.withVisit { host, visit in
                try await requireError(.invalidArgument, from: "the write") {
                    try await visit.connection.write(pattern(513), to: visit.message, type: .withResponse)
                }
                try await host.events.expectNone(for: bench.silence, "a write of too much") { $0.writeRequest != nil }
            }
        },
        ContractCase("A write request that is not answered for 5 s fails, and the link lives on") { bench in
            let answers: Host.Answers = { event in event.writeRequest?.value == [1] ? nil : Host.agreeable(event) }
            try await bench.withVisit(answers: answers) { host, visit in
                let start = bench.central.clock.present
                let error = try await requireError(.attributeError, from: "the write") {
                    try await visit.connection.write([1], to: visit.message, type: .withResponse)
                }
                try require(error.att == .unlikelyError, "the ATT error: \(String(describing: error.att))")
                let taken = start.duration(to: bench.central.clock.present)
                try require(taken > .seconds(4) && taken < .seconds(8), "it took \(taken)")
                // An answer after the limit, and a second one, are of no consequence.
                let request = try await host.events.next(within: bench.patience, "the write") { $0.writeRequest }
                await host.session.respond(to: request.id, with: .accept)
                await host.session.respond(to: request.id, with: .accept)
                try await visit.connection.write([2], to: visit.message, type: .withResponse)
            }
        },
        ContractCase("Writes to one characteristic are queued, and arrive in order") { bench in
            try await bench.withVisit { host, visit in
                let connection = visit.connection
                let values = 1...5 as ClosedRange<UInt8>
                // Each is asked for before the next, and none has ended by then.
                let writes = values.map { value in
                    Task.immediate { try await connection.write([value], to: visit.message, type: .withResponse) }
                }
                for write in writes { try await write.value }
                for value in values {
                    let next = try await host.events.next(within: bench.patience, "write \(value)") {
                        $0.writeRequest?.value
                    }
                    try require(next == [value], "\(next) in place of write \(value)")
                }
            }
        },
        ContractCase("A cancelled write throws at once, and the link lives on") { bench in
            let answers: Host.Answers = { event in event.writeRequest?.value == [1] ? nil : Host.agreeable(event) }
            try await bench.withVisit(answers: answers) { host, visit in
                let task = Task { try await visit.connection.write([1], to: visit.message, type: .withResponse) }
                let request = try await host.events.next(within: bench.patience, "the write") { $0.writeRequest }
                task.cancel()
                try await within(bench.silence, bench.central.clock, "the write's end") {
                    _ = try await requireError(.cancelled, from: "the write") { try await task.value }
                }
                await host.session.respond(to: request.id, with: .accept)
                try await visit.connection.write([2], to: visit.message, type: .withResponse)
            }
        },
    ]

    private static func checkWrite(of length: Int, _ bench: ContractBench) async throws {
        let value = pattern(length)
        try await bench.withVisit { host, visit in
            try await visit.connection.write(value, to: visit.message, type: .withResponse)
            var received: [UInt8] = []
            while received.count < length {
                let count = received.count
                let request = try await host.events.next(within: bench.patience, "\(length) bytes after \(count)") {
                    $0.writeRequest
                }
                try require(request.offset == count, "a part at \(request.offset) after \(count) bytes")
                received += request.value
            }
            try require(received == value, "\(length) bytes arrived as others")
        }
    }
}

/// Bytes that show where they stood.
func pattern(_ length: Int) -> [UInt8] {
    (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 256) }
}
