// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@testable import SimulatedRadio

@Suite struct TimelineTests {
    let start = ContinuousClock.now

    @Test func entriesComeByDeadlineAndThenInTheOrderOfTheirAddition() {
        var timeline = Timeline<Int>()
        var generator = SeededGenerator(seed: 1)
        var expected: [(deadline: Int, entry: Int)] = []
        var removed: [(Timeline<Int>.ID)] = []
        for entry in 0..<2_000 {
            let deadline = Int.random(in: 0..<100, using: &generator)
            let id = timeline.add(entry, at: start.advanced(by: .seconds(deadline)))
            if entry % 3 == 0 { removed.append(id) } else { expected.append((deadline, entry)) }
        }
        for (index, id) in removed.enumerated() { #expect(timeline.remove(id) == index * 3) }
        #expect(removed.first.map { timeline.remove($0) } == .some(nil))
        #expect(timeline.count == expected.count)
        var popped: [Int] = []
        while let next = timeline.popFirst(due: start.advanced(by: .seconds(100))) { popped.append(next.entry) }
        #expect(popped == expected.sorted { ($0.deadline, $0.entry) < ($1.deadline, $1.entry) }.map(\.entry))
        #expect(timeline.first == nil)
    }

    @Test func nothingIsDueBeforeItsTime() {
        var timeline = Timeline<Int>()
        _ = timeline.add(1, at: start.advanced(by: .seconds(1)))
        #expect(timeline.popFirst(due: start) == nil)
        #expect(timeline.first == start.advanced(by: .seconds(1)))
        #expect(timeline.popFirst(due: start.advanced(by: .seconds(1)))?.entry == 1)
    }
}

/// Lines that any thread may add.
final class ObservationLog: Sendable {
    private let stored = Locked<[String]>([])

    func add(_ line: String) { stored.withLock { $0.append(line) } }

    var lines: [String] { stored.withLock { $0 } }
}
