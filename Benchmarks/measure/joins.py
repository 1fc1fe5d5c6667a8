# SPDX-License-Identifier: MIT
"""One host, a thousand clients one after another: does memory or time per join grow?"""

import json
import statistics

from .common import run, spread, table, verdict

RUNS = 11
CLIENTS = 1000


def measure(paths):
    runs = [json.loads(run([paths.swift / "Joins", CLIENTS])) for _ in range(RUNS)]
    blocks = list(zip(*(run["blocks"] for run in runs)))
    # Whatever else the machine does only adds to a join's time: the lower decile, and of all runs
    # the lowest, shows best what the join itself takes.
    deciles = [min(value["decile_us"] for value in block) for block in blocks]
    middle = statistics.median(deciles[1:])
    rows = []
    for block, decile in zip(blocks, deciles):
        _, span = spread([value["decile_us"] for value in block], 0)
        median = statistics.median(value["median_us"] for value in block)
        least = min(value["least_us"] for value in block)
        rss = statistics.median(value["rss_kb"] for value in block)
        heap = statistics.median(value["heap_kb"] for value in block)
        rows.append([block[0]["clients"], f"{decile:.0f}", span, f"{100 * (decile / middle - 1):+.1f}", f"{median:.0f}",
                     f"{least:.0f}", f"{rss:.0f}", f"{heap:.0f}"])
    table(
        f"joins: {CLIENTS} clients join one host one after another, simulated radio, manual clock, {RUNS} runs",
        ["clients", "us/join", "range", "off by %", "median", "least", "RSS KiB", "heap KiB"],
        rows,
    )
    print("  us/join: the lower decile of the block's hundred joins, lowest of the runs; off by: from the median of the\n"
          "  blocks after the first; median, least: of the block's joins; heap: what malloc has given out")

    growth = [100 * (run["blocks"][-1]["rss_kb"] / run["blocks"][0]["rss_kb"] - 1) for run in runs]
    off = [100 * (decile / middle - 1) for decile in deciles[1:]]
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
