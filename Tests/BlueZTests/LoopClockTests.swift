// SPDX-License-Identifier: MIT

import BluetoothLE
import DBus
import Testing

@testable import BlueZ

@Suite(.timeLimit(.minutes(1))) struct LoopClockTests {
    private let clock = LoopClock(loop: EventLoop(name: "clock"))

    @Test(arguments: [nil, Duration.seconds(3)])
    func wakesNoEarlierThanTheDeadline(tolerance: Duration?) async throws {
        let deadline = clock.now + .milliseconds(3)
        try await clock.sleep(until: deadline, tolerance: tolerance)
        #expect(clock.now >= deadline)
    }

    @Test func doesNotSleepForWhatIsPast() async throws {
        try await clock.sleep(until: clock.now - .seconds(1), tolerance: nil)
    }

    @Test(arguments: [Duration.seconds(3600), .seconds(Int64.max)])
    func aCancelledSleeperWakesAtOnce(time: Duration) async {
        let sleeping = Task { [clock] in try await clock.sleep(for: time, tolerance: nil) }
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
    }

    @Test func aCancelledTaskDoesNotFallAsleep() async {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let sleeping = Task { [clock] in
            for await _ in gate {}
            try await clock.sleep(for: .seconds(3600))
        }
        sleeping.cancel()
        open.finish()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
    }

    /// On the loop, so that all of them sleep before the first deadline, however busy the other threads are.
    @Test func manySleepersWakeInTheOrderOfTheirDeadlines() async {
        let order = await Task(executorPreference: clock.loop) { [clock] in
            let began = clock.now
            return await withTaskGroup(of: Int.self) { group in
                for number in [3, 1, 2] {
                    group.addTask(executorPreference: clock.loop) {
                        try? await clock.sleep(until: began + .milliseconds(50 * number), tolerance: nil)
                        return number
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
        }.value
        #expect(order == [1, 2, 3])
    }
}
