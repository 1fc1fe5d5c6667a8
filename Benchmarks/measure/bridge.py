# SPDX-License-Identifier: MIT
"""A handoff through the bridge against the same handoff without it, in turn, on one simulated BlueZ."""

import json
import statistics
import subprocess

from .common import NotMeasured, child, run, spread, table, verdict, wait_for_line

ROUNDS = 40
APP = ["--app-id", "com.example.bridge"]
PHASES = ["seen", "connected", "resolved", "subscribed", "written", "answered"]
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}


def first_line(process, word):
    """The first line of a child that prints JSON."""
    line = process.stdout.readline()
    if word not in line.decode():
        raise NotMeasured(f"{process.args[1]}: '{word}' was awaited, {line!r} came")
    return json.loads(line)


def join(nearby, options):
    """The handoff's phases in milliseconds from the join's start."""
    line = run([nearby, "join", "--json", "--quiet", *APP, *options]).splitlines()[0]
    return json.loads(line)["timing"]


def measure(paths):
    nearby = paths.nearby
    with child([nearby, "simulate", "--json", "--adapters", 3], **QUIET) as simulation:
        bus = ["--bus", first_line(simulation, "simulating")["bus"]]
        bridging = [nearby, "bridge", "--json", "--listen", "127.0.0.1:0", "--adapter", "hci2", *bus]
        hosting = [nearby, "host", "--json", "--adapter", "hci0", "--payload", "roomCode=SWIFT42", *APP, *bus]
        with child(bridging, **QUIET) as bridge, child(hosting, **QUIET) as host:
            through = ["--radio", "bridge:" + first_line(bridge, "bridging")["listen"]]
            wait_for_line(host, "serving")
            ways = {"without": [*bus, "--adapter", "hci1"], "through": through}
            times = {way: [] for way in ways}
            for number in range(ROUNDS + 1):
                for way, options in ways.items():
                    timing = join(nearby, options)
                    # The first of each fills caches.
                    if number > 0:
                        times[way].append(timing)
    report(times)


def report(times):
    def phase(way, name):
        return [timing[name] for timing in times[way]]

    rows = []
    for name in PHASES:
        without, through = phase("without", name), phase("through", name)
        rows.append([name, *spread(without, 1), *spread(through, 1),
                     f"{statistics.median(through) - statistics.median(without):+.1f}"])
    table(
        f"bridge: `nearby join` on a simulated BlueZ, with and without the bridge in turn, {ROUNDS} of each",
        ["ms from the start to", "without", "range", "through", "range", "more"],
        rows,
    )
    whole = [statistics.median(phase(way, "answered")) for way in ("through", "without")]
    after = [statistics.median(t["answered"] - t["seen"] for t in times[way]) for way in ("through", "without")]
    table(
        "bridge: what is asked",
        ["figure", "value", "n", "target", ""],
        [
            ["handoff, start to answer: through the bridge / without", f"{whole[0] / whole[1]:.2f}", ROUNDS,
             *verdict("bridge.handoff.ratio", whole[0] / whole[1])],
            ["of it, seen to answer, ms: through / without", f"{after[0]:.1f} / {after[1]:.1f}", ROUNDS, "", ""],
        ],
    )
    print("  on the simulated air connecting and discovery take 100 ms each, and every other exchange takes nothing")
