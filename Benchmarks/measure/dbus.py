# SPDX-License-Identifier: MIT
"""The round trip of a method call: ours against libdbus's blocking call, same bus, same server, same core."""

import json
import os
import statistics
import subprocess

from .common import child, private_bus, run, spread, table, verdict, wait_for_line

ROUNDS = 21
WARM_UP = 500
CALLS = 2000


def measure(paths):
    core = max(os.sched_getaffinity(0))
    pin = ("taskset", "-c", str(core))
    # The yardstick runs twice a round: what the two differ by is what a difference has to exceed to mean anything.
    callers = {
        "C, libdbus, blocking": [paths.c / "blocking_caller"],
        "the same again": [paths.c / "blocking_caller"],
        "call from an actor on the loop": [paths.swift / "DBusRoundTrip", "actor"],
        "call from a plain async function": [paths.swift / "DBusRoundTrip", "async"],
        "the same, its task prefers the loop": [paths.swift / "DBusRoundTrip", "preferred"],
    }
    results = {name: [] for name in callers}
    with private_bus(pin) as address:
        with child([*pin, paths.c / "echo_server", address], stdout=subprocess.PIPE) as server:
            wait_for_line(server, "ready")
            for number in range(ROUNDS):
                # Each round begins with another caller, so that none always runs after the same one.
                names = list(callers)
                names = names[number % len(names):] + names[:number % len(names)]
                for name in names:
                    output = run([*callers[name], address, WARM_UP, CALLS], pin)
                    results[name].append(json.loads(output))

    base = results["C, libdbus, blocking"]
    keys = {
        "call from an actor on the loop": "dbus.actor.ratio",
        "call from a plain async function": "dbus.async.ratio",
        "the same, its task prefers the loop": "dbus.preferred.ratio",
    }
    rows = []
    for name, values in results.items():
        median, span = spread([value["mean_ns"] / 1000 for value in values])
        ratios = [value["mean_ns"] / other["mean_ns"] for value, other in zip(values, base)]
        typical = statistics.median(value["median_ns"] / other["median_ns"] for value, other in zip(values, base))
        ratio, ratio_span = spread(ratios)
        target, result = verdict(keys[name], statistics.median(ratios)) if name in keys else ("", "")
        switches = statistics.median(value["switches"] for value in values)
        rows.append([name, median, span, len(values), ratio, ratio_span, f"{typical:.2f}", f"{switches:.1f}",
                     target, result])
    table(
        f"dbus: Echo(s ay[20]) through a private dbus-daemon, all on core {core}, {CALLS} calls a run",
        ["caller", "us/call", "range", "n", "ratio", "range", "of medians", "switches/call", "target", ""],
        rows,
    )
    print("  us/call: a run's time divided by its calls; ratio: to the C run of the same round; of medians: the same for\n"
          "  the median call; switches: the caller's voluntary context switches")
