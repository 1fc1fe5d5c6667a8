// SPDX-License-Identifier: MIT

import Glibc

/// Times each call, and counts the process's own context switches.
struct Times {
    private var laps: [UInt64] = []
    private let start: UInt64
    private var last: UInt64
    private let switches: Int

    init(calls: Int) {
        laps.reserveCapacity(calls)
        switches = Times.voluntarySwitches()
        start = Times.now()
        last = start
    }

    mutating func lap() {
        let now = Times.now()
        laps.append(now - last)
        last = now
    }

    /// One JSON object: what each caller that is compared prints.
    var report: String {
        let switches = Double(Times.voluntarySwitches() - switches) / Double(laps.count)
        let mean = (last - start) / UInt64(laps.count)
        let median = laps.sorted()[laps.count / 2]
        return #"{"calls":\#(laps.count),"mean_ns":\#(mean),"median_ns":\#(median),"switches":\#(switches)}"#
    }

    private static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private static func voluntarySwitches() -> Int {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage.ru_nvcsw
    }
}
