# SPDX-License-Identifier: MIT
"""One host, a thousand clients one after another: does memory or time per join grow?"""

import json
import statistics

from .common import run, spread, table, verdict

RUNS = 5
CLIENTS = 1000


def measure(paths):
    runs = [json.loads(run([paths.swift / "Joins", CLIENTS])) for _ in range(RUNS)]
    blocks = list(zip(*(run["blocks"] for run in runs)))
    first = statistics.median(block["median_us"] for block in blocks[0])
    rows = []
    for block in blocks:
        median, span = spread([value["median_us"] for value in block], 0)
        least = min(value["least_us"] for value in block)
        rss = statistics.median(value["rss_kb"] for value in block)
        heap = statistics.median(value["heap_kb"] for value in block)
        rows.append([block[0]["clients"], median, span, f"{least:.0f}", f"{float(median) / first:.2f}",
                     f"{rss:.0f}", f"{heap:.0f}"])
    table(
        f"joins: {CLIENTS} clients join one host one after another, simulated radio, manual clock, {RUNS} runs",
        ["clients", "us/join", "range", "least", "ratio", "RSS KiB", "heap KiB"],
        rows,
    )
    print("  us/join: median of the block's joins, then of the runs; ratio: to the first block; heap: bytes in use in malloc")

    growth = [100 * (run["blocks"][-1]["rss_kb"] / run["blocks"][0]["rss_kb"] - 1) for run in runs]
    times = [statistics.median(value["median_us"] for value in block) for block in blocks[1:]]
    middle = statistics.median(times)
    off = [100 * (time / middle - 1) for time in times]
    worst = max(off, key=abs)
    median, span = spread(growth, 1)
    table(
        "joins: what is asked",
        ["figure", "value", "range", "n", "target", ""],
        [
            ["RSS growth from 100 to 1,000 clients, %", median, span, RUNS,
             *verdict("joins.growth_percent", float(median))],
            ["block farthest from the median of 100 to 1,000, %", f"{worst:+.1f}",
             f"{min(off):+.1f}..{max(off):+.1f}", len(off), *verdict("joins.spread_percent", abs(worst))],
        ],
    )
