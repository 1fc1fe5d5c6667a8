// SPDX-License-Identifier: MIT

import Testing

@testable import DBus

@Suite struct LoopTests {
    actor Resident {
        let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private(set) var count = 0

        init(loop: EventLoop) {
            self.loop = loop
        }

        func bump() -> Bool {
            count += 1
            return loop.isCurrent
        }

        nonisolated func bumpFromLoop() {
            assumeIsolated { _ = $0.bump() }
        }
    }

    @Test func actorsLiveOnTheLoop() async {
        let resident = Resident(loop: EventLoop(name: "test"))
        #expect(await resident.bump())
        let done = Inbox<Bool>()
        resident.loop.execute {
            resident.bumpFromLoop()
            done.put(true)
        }
        #expect((try? await done.next()) == true)
        #expect(await resident.count == 2)
        #expect(!resident.loop.isCurrent)
    }

    @Test func timersFireInOrderAndCancelledOnesDoNot() async throws {
        let loop = EventLoop(name: "test")
        let inbox = Inbox<Int>()
        loop.execute {
            loop.schedule(after: .milliseconds(20)) { inbox.put(3) }
            loop.schedule(after: .milliseconds(10)) { inbox.put(2) }
            loop.schedule(after: .zero) { inbox.put(0) }
            loop.schedule(after: .zero) { inbox.put(1) }
            let cancelled = loop.schedule(after: .milliseconds(5)) { inbox.put(99) }
            cancelled.cancel()
            cancelled.cancel()
        }
        for expected in 0...3 { #expect(try await inbox.next() == expected) }
        let far = loop.schedule(after: .seconds(3600)) { inbox.put(99) }
        far.cancel()
        loop.schedule(after: .milliseconds(1)) { inbox.put(4) }
        #expect(try await inbox.next() == 4)
    }

    @Test func theHeapGivesTimersInTheOrderOfTheirDeadlines() throws {
        let core = LoopCore()
        var heap = TimerHeap()
        var numbers = Numbers(state: 3)
        var timers: [TimerToken] = []
        for order in UInt64(0)..<500 {
            let timer = TimerToken(deadline: numbers.next() % 50, order: order, core: core) {}
            timers.append(timer)
            heap.insert(timer)
        }
        let removed = timers.filter { $0.order % 3 == 0 }
        for timer in removed {
            heap.remove(timer)
            heap.remove(timer)
        }
        var found: [TimerToken] = []
        while let timer = heap.first {
            heap.remove(timer)
            found.append(timer)
        }
        let expected = timers.filter { $0.order % 3 != 0 }.sorted { ($0.deadline, $0.order) < ($1.deadline, $1.order) }
        #expect(found.map(\.order) == expected.map(\.order))
    }

    /// The loop wakes up for the timer that asks, and for nothing in between.
    @Test func anIdleLoopSleeps() async throws {
        let fixture = try await BusFixture()
        defer { fixture.keep() }
        try await fixture.server.export(TestObject(), at: "/obj")
        try await fixture.ping()
        let loop = fixture.loop
        let inbox = Inbox<UInt64>()
        loop.execute {
            let before = loop.wakeUps
            loop.schedule(after: .milliseconds(300)) { inbox.put(loop.wakeUps - before) }
        }
        // One return for the timer, and one at most for a turn that was under way.
        #expect(try await inbox.next() <= 2)
    }

    @Test func jobsFromManyThreadsAllRun() async {
        let loop = EventLoop(name: "test")
        let resident = Resident(loop: loop)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<1000 { group.addTask { _ = await resident.bump() } }
        }
        #expect(await resident.count == 1000)
    }
}
