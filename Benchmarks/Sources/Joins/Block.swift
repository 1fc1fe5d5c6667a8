// SPDX-License-Identifier: MIT

import CMalloc
import Glibc

/// What was measured over a hundred joins.
struct Block {
    /// How many clients had joined at its end.
    let clients: Int
    /// Nanoseconds, one per join.
    let times: [UInt64]
    let memory: Memory

    var json: String {
        let sorted = times.sorted()
        let median = Double(sorted[sorted.count / 2]) / 1000
        let decile = Double(sorted[sorted.count / 10]) / 1000
        let least = Double(sorted[0]) / 1000
        return """
            {"clients":\(clients),"median_us":\(median),"decile_us":\(decile),"least_us":\(least),\
            "rss_kb":\(memory.resident),"heap_kb":\(memory.heap)}
            """
    }
}

/// KiB.
struct Memory {
    /// Pages in memory.
    let resident: Int
    /// Bytes that malloc has given out and not got back.
    let heap: Int

    static func now() -> Memory {
        let usage = mallinfo2()
        return Memory(resident: residentPages() * pageSize() / 1024, heap: Int(usage.uordblks + usage.hblkhd) / 1024)
    }

    private static func pageSize() -> Int { sysconf(Int32(_SC_PAGESIZE)) }

    /// The second field of `statm` (proc(5)).
    private static func residentPages() -> Int {
        let file = open("/proc/self/statm", O_RDONLY)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 128)
        let count = read(file, &bytes, bytes.count)
        let fields = bytes.prefix(max(0, count)).split(separator: UInt8(ascii: " "))
        return fields.count > 1 ? Int(String(decoding: fields[1], as: UTF8.self)) ?? 0 : 0
    }
}

enum Monotonic {
    /// Nanoseconds.
    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
