// SPDX-License-Identifier: MIT

/// Entries by deadline; equal deadlines in the order in which they were added.
struct Timeline<Entry> {
    struct ID: Hashable, Sendable {
        fileprivate let sequence: UInt64
    }

    private struct Item {
        let deadline: ContinuousClock.Instant
        let sequence: UInt64

        func precedes(_ other: Item) -> Bool {
            deadline == other.deadline ? sequence < other.sequence : deadline < other.deadline
        }
    }

    // A binary heap of deadlines; a removed entry leaves its item behind until that comes to the top, or until
    // such items are the majority.
    private var heap: [Item] = []
    private var entries: [UInt64: Entry] = [:]
    private var nextSequence: UInt64 = 0

    var count: Int { entries.count }

    /// The earliest deadline.
    var first: ContinuousClock.Instant? {
        mutating get {
            dropRemoved()
            return heap.first?.deadline
        }
    }

    mutating func add(_ entry: Entry, at deadline: ContinuousClock.Instant) -> ID {
        let item = Item(deadline: deadline, sequence: nextSequence)
        nextSequence += 1
        entries[item.sequence] = entry
        heap.append(item)
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].precedes(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
        return ID(sequence: item.sequence)
    }

    @discardableResult
    mutating func remove(_ id: ID) -> Entry? {
        let entry = entries.removeValue(forKey: id.sequence)
        if heap.count > 64, heap.count > 2 * entries.count {
            // Sorted by precedence, an array is a heap.
            heap = heap.filter { entries[$0.sequence] != nil }.sorted { $0.precedes($1) }
        }
        return entry
    }

    /// Takes the earliest entry if its time has come.
    mutating func popFirst(due now: ContinuousClock.Instant) -> (deadline: ContinuousClock.Instant, entry: Entry)? {
        dropRemoved()
        guard let item = heap.first, item.deadline <= now, let entry = entries.removeValue(forKey: item.sequence)
        else { return nil }
        removeTop()
        return (item.deadline, entry)
    }

    private mutating func dropRemoved() {
        while let item = heap.first, entries[item.sequence] == nil { removeTop() }
    }

    private mutating func removeTop() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].precedes(heap[least])
            {
                least = child
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
