// SPDX-License-Identifier: MIT

import BluetoothLE
import ContractSuite
import Glibc
import Testing

@testable import BridgeRadio

/// What blocks for longer than anybody waits.
@Suite(.timeLimit(.minutes(1))) struct BlockingCallTests {
    /// Blocks until the other end is closed, and is 7.
    private struct Blockage {
        let reading: Int32
        let writing: Int32

        init() throws {
            var ends: [Int32] = [-1, -1]
            try require(pipe(&ends) == 0, "a pipe")
            (reading, writing) = (ends[0], ends[1])
        }

        @Sendable func wait() -> Int {
            var byte: UInt8 = 0
            _ = read(reading, &byte, 1)
            close(reading)
            return 7
        }

        func end() { close(writing) }
    }

    @Test func aValueInTimeIsGiven() async throws {
        let blockage = try Blockage()
        blockage.end()
        let discarded = Latch<Int>()
        let outcome = await BlockingCall.run(within: .seconds(60), discarding: { discarded.set($0) }) {
            blockage.wait()
        }
        guard case .done(7) = outcome else { throw ContractViolation(description: "\(outcome)") }
        #expect(discarded.value == nil)
    }

    @Test func whatTakesTooLongIsNotWaitedForAndItsValueIsDiscarded() async throws {
        let blockage = try Blockage()
        let discarded = Latch<Int>()
        let outcome = await BlockingCall.run(within: .milliseconds(1), discarding: { discarded.set($0) }) {
            blockage.wait()
        }
        guard case .late = outcome else { throw ContractViolation(description: "\(outcome)") }
        blockage.end()
        #expect(await discarded.value() == 7)
    }

    @Test func aCancelledTaskDoesNotWaitAndTheValueIsDiscarded() async throws {
        let blockage = try Blockage()
        let discarded = Latch<Int>()
        let waiting = Task {
            await BlockingCall.run(within: .seconds(60), discarding: { discarded.set($0) }) { blockage.wait() }
        }
        waiting.cancel()
        let outcome = await waiting.value
        guard case .cancelled = outcome else { throw ContractViolation(description: "\(outcome)") }
        blockage.end()
        #expect(await discarded.value() == 7)
    }
}
