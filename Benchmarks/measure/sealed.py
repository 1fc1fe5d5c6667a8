# SPDX-License-Identifier: MIT
"""What sealing, opening and framing a handoff of 400 bytes costs each side in CPU, public-key operations included."""

import json
import statistics

from .common import run, spread, table, verdict

RUNS = 7
EXCHANGES = 200


def measure(paths):
    # Cases in one process, processes one after the other: a case is judged by the median of its runs' medians.
    runs = [json.loads(run([paths.root / "SealedCost", EXCHANGES])) for _ in range(RUNS)]
    rows, worst = [], {"host": 0.0, "client": 0.0}
    for case in zip(*runs):
        name = f"{case[0]['security']}, ATT MTU {case[0]['mtu']}"
        for side in worst:
            medians = [statistics.median(row[f"{side}_us"]) for row in case]
            ratios = [own / statistics.median(row["keys_us"]) for own, row in zip(medians, case)]
            median, span = spread(medians, 0)
            worst[side] = max(worst[side], statistics.median(medians) / 1000)
            rows.append([f"{name}: {side}", case[0]["frames"], median, span, f"{statistics.median(ratios):.2f}"])
    keys, span = spread([statistics.median(row["keys_us"]) for case in runs for row in case], 0)
    rows.append(["libsodium: a generator, two multiplications", "", keys, span, "1"])
    table(
        f"sealed: a handoff of 400 bytes from hello to receipt, no radio, {RUNS} runs of {EXCHANGES}",
        ["side", "frames", "us CPU", "range", "ratio"],
        rows,
    )
    print("  frames: of the exchange, both ways; ratio: to libsodium's own work in the same run")
    table(
        "sealed: what is asked",
        ["figure", "value", "n", "target", ""],
        [[f"the dearest case, {side}, ms of CPU", f"{value:.2f}", RUNS, *verdict(f"sealed.{side}_ms", value)]
         for side, value in worst.items()],
    )
