// SPDX-License-Identifier: MIT

import BluetoothLE
import Testing

@testable import NearbyDiscoveryKit

@Suite struct InboxTests {
    @Test func elementsComeOutInOrder() async {
        let inbox = Inbox<Int>()
        for number in 0..<200 { inbox.post(number) }
        var received: [Int] = []
        for _ in 0..<200 { received.append(await inbox.next() ?? -1) }
        #expect(received == Array(0..<200))
    }

    @Test func aReaderThatWaitsGetsTheNextElement() async {
        let inbox = Inbox<String>()
        let element = Task.immediate { await inbox.next() }
        inbox.post("late")
        #expect(await element.value == "late")
    }

    @Test func aSenderWaitsWhileTheInboxIsFull() async {
        let inbox = Inbox<Int>()
        for number in 0..<Limits.inbox { inbox.post(number) }
        let sent = Locked(false)
        // It has run as far as it gets before something is read.
        let sender = Task.immediate {
            await inbox.send(1_000)
            sent.withLock { $0 = true }
        }
        #expect(sent.withLock { $0 } == false)
        var received: [Int] = []
        for _ in 0...Limits.inbox { received.append(await inbox.next() ?? -1) }
        await sender.value
        #expect(sent.withLock { $0 })
        #expect(received.last == 1_000)
    }

    @Test func closingFreesReaderAndSenders() async {
        let inbox = Inbox<Int>()
        for number in 0..<Limits.inbox { inbox.post(number) }
        let sender = Task.immediate { await inbox.send(1) }
        inbox.close()
        await sender.value
        for _ in 0..<Limits.inbox { _ = await inbox.next() }
        #expect(await inbox.next() == nil)
        inbox.post(2)
        #expect(await inbox.next() == nil)
    }

    @Test func aClosedInboxWakesItsReader() async {
        let inbox = Inbox<Int>()
        let element = Task.immediate { await inbox.next() }
        inbox.close()
        #expect(await element.value == nil)
    }
}

@Suite struct BroadcastTests {
    @Test func everyReaderGetsEveryEvent() async {
        let hub = Broadcast<Int>(keeping: Limits.events, readers: Limits.eventReaders)
        let first = hub.stream()
        let second = hub.stream()
        hub.send(1)
        hub.send(2)
        hub.finish()
        var seen: [[Int]] = []
        for stream in [first, second] {
            var events: [Int] = []
            for await event in stream { events.append(event) }
            seen.append(events)
        }
        #expect(seen == [[1, 2], [1, 2]])
    }

    @Test func aSlowReaderKeepsTheNewest() async {
        let hub = Broadcast<Int>(keeping: Limits.events, readers: Limits.eventReaders)
        let stream = hub.stream()
        for number in 0..<1_000 { hub.send(number) }
        hub.finish()
        var events: [Int] = []
        for await event in stream { events.append(event) }
        #expect(events == Array((1_000 - Limits.events)..<1_000))
    }

    @Test func aStreamAfterTheEndIsEmpty() async {
        let hub = Broadcast<Int>(keeping: Limits.events, readers: Limits.eventReaders)
        hub.finish()
        var count = 0
        for await _ in hub.stream() { count += 1 }
        #expect(count == 0)
    }

    @Test func readersBeyondTheBoundGetAnEmptyStream() async {
        let hub = Broadcast<Int>(keeping: Limits.events, readers: Limits.eventReaders)
        let readers = (0..<Limits.eventReaders).map { _ in hub.stream() }
        var count = 0
        for await _ in hub.stream() { count += 1 }
        #expect(count == 0)
        hub.send(1)
        hub.finish()
        for reader in readers {
            for await event in reader { count += event }
        }
        #expect(count == Limits.eventReaders)
    }
}
