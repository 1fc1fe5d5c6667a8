// SPDX-License-Identifier: MIT

import BluetoothLE
import SimulatedRadio
import Testing

@Suite struct ManualClockTests {
    let clock = ManualClock()

    @Test func sleepersWakeInTheOrderOfTheirDeadlines() async throws {
        let order = Log<Int>()
        let clock = clock
        for seconds in [3, 1, 2] {
            Task {
                try await clock.sleep(for: .seconds(seconds))
                await order.add(seconds)
            }
        }
        await clock.waitForSleepers(atLeast: 3)
        await clock.advance(by: .seconds(10))
        #expect(await order.elements == [1, 2, 3])
        #expect(clock.elapsed == .seconds(10))
        #expect(clock.sleeperCount == 0)
    }

    @Test func aSleeperSleepsUntilItsDeadlineAndNotLonger() async throws {
        let log = Log<Duration>()
        let clock = clock
        Task {
            try await clock.sleep(for: .seconds(5))
            await log.add(clock.elapsed)
            try await clock.sleep(for: .seconds(2))
            await log.add(clock.elapsed)
        }
        await clock.waitForSleepers(atLeast: 1)
        await clock.advance(by: .milliseconds(4_999))
        #expect(await log.elements == [])
        await clock.advance(by: .milliseconds(1))
        #expect(await log.elements == [.seconds(5)])
        await clock.advance(by: .seconds(60))
        #expect(await log.elements == [.seconds(5), .seconds(7)])
    }

    @Test func aDeadlineThatIsPastDoesNotSleep() async throws {
        try await clock.sleep(until: clock.now)
        try await clock.sleep(for: .seconds(-1))
    }

    @Test func aCancelledSleeperThrowsAndIsForgotten() async throws {
        let clock = clock
        let task = Task { try await clock.sleep(for: .seconds(1)) }
        await clock.waitForSleepers(atLeast: 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(clock.sleeperCount == 0)
        #expect(await clock.advanceToNextDeadline() == false)
    }

    @Test func aTaskThatIsCancelledAlreadyDoesNotFallAsleep() async throws {
        let clock = clock
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await clock.sleep(for: .seconds(1))
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func advancingToTheNextSleeperPassesByWhatIsNone() async throws {
        let clock = clock
        let medium = SimulatedMedium(clock: clock)
        let host = medium.addAdapter()
        let phone = medium.addAdapter()
        _ = try await host.serve([], advertising: AdvertisementRequest(serviceUUIDs: [0x180A]))
        let scan = try await phone.scan(for: ScanFilter())
        let task = Task { try await clock.sleep(for: .milliseconds(250)) }
        await clock.waitForSleepers(atLeast: 1)
        #expect(await clock.advanceToNextSleeper())
        #expect(clock.elapsed == .milliseconds(250))
        try await task.value
        await scan.stop()
    }

    @Test func runGivesTheResultAndOnlyTheTimeThatItTook() async throws {
        let clock = clock
        let value = try await clock.run {
            try await clock.sleep(for: .seconds(3))
            return 42
        }
        #expect(value == 42)
        #expect(clock.elapsed == .seconds(3))
    }

    @Test func runThrowsWhatTheOperationThrows() async throws {
        await #expect(throws: BluetoothError.cancelled) { try await clock.run { throw BluetoothError.cancelled } }
    }

    @Test func runEndsAnOperationAtItsLimit() async throws {
        let clock = clock
        let error = await #expect(throws: BluetoothError.self) {
            try await clock.run(limit: .seconds(5)) { try await clock.sleep(for: .seconds(6)) }
        }
        #expect(error?.code == .timedOut)
        #expect(clock.elapsed <= .seconds(5))
    }

    @Test func runEndsAnOperationForWhichNothingIsDue() async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        let error = await #expect(throws: BluetoothError.self) {
            try await clock.run(patience: .milliseconds(50)) { for await _ in stream {} }
        }
        #expect(error?.code == .timedOut)
        continuation.finish()
    }

    @Test func aChainOfTasksIsWaitedForBeforeALongStep() async throws {
        let clock = clock
        // Each hop is a chance to let time pass too early; the deadline must never win.
        for _ in 1...50 {
            let start = clock.now
            try await clock.run {
                let deadline = Task { try await clock.sleep(for: .seconds(30)) }
                let log = Log<Int>()
                for hop in 1...20 { await Task { await log.add(hop) }.value }
                deadline.cancel()
            }
            #expect(start.duration(to: clock.now) == .zero)
        }
    }
}

actor Log<Element: Sendable> {
    private(set) var elements: [Element] = []

    func add(_ element: Element) { elements.append(element) }
}
