# SPDX-License-Identifier: MIT
"""What a handoff costs a client and a host on this processor, beside bleak, SimpleBLE and dbus-fast, in turn."""

import contextlib
import json
import os
import statistics
import subprocess
import time

from .common import HERE, NotMeasured, child, private_bus, spread, table, verdict, wait_for_line

ROUNDS = 20
BLOCKS, HANDOFFS = 5, 5
#: SimpleBLE's calls time out now and then, here as in the lab; the more, the busier the machine is.
MAY_FAIL = 6
APP = "com.example.lab"
PLAYER = HERE / "measure" / "played_bluez.py"
LAB = HERE.parent / "Tests" / "Lab"
REQUEST = '{"type":"join_request","protocolVersion":1,"appId":"com.example.lab"}'
ADAPTER = "00:AA:01:00:00:42"
SERVICE, MESSAGE = "a1b2c3d4-e5f6-7890-abcd-ef1234567890", "b2c3d4e5-f6a7-8901-bcde-f12345678901"


def environment(address):
    """Every peer takes the private bus for the system's; the lab's peers ask which BlueZ it is."""
    return {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": address, "PYTHONPATH": str(LAB), "LAB_BLUEZ": "5.66",
            "PYTHONDONTWRITEBYTECODE": "1"}


def has(paths, module):
    return subprocess.run([paths.python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0


@contextlib.contextmanager
def played(paths, role, *more):
    """org.bluez on a bus of its own; gives the bus and what the player says, line by line."""
    with private_bus() as address, child([paths.python, PLAYER, role, address, *more], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, env=environment(address)) as player:

        def says(word):
            line = player.stdout.readline()
            if word not in line.decode():
                raise NotMeasured(f"the played BlueZ: '{word}' was awaited, {line!r} came")
            return json.loads(line)

        says("playing")
        yield address, says


def clients(paths):
    commands = {
        "nearby": [paths.nearby, "join", "--app-id", APP, "--adapter", "hci1", "--json"],
        "bleak": [paths.python, LAB / "lab" / "peers" / "alone.py", "client", "bleak", "hci1"],
        "C": [paths.c / "bare_client", "hci1"],
    }
    if has(paths, "simplepyble"):
        commands["SimpleBLE"] = [paths.python, LAB / "lab" / "peers" / "simpleble_join.py", ADAPTER, SERVICE, MESSAGE,
                                 REQUEST]
    else:
        print("\npeers: no SimpleBLE (simplepyble is in the environment that scripts/lab.sh makes)")
    found, failures = {name: [] for name in commands}, []
    with played(paths, "client") as (address, says):
        for number in range(ROUNDS + 1):
            for turn in range(len(commands)):
                name = list(commands)[(number + turn) % len(commands)]
                # It says what it costs when it disconnects, so the pipe is read once the process has ended.
                process = subprocess.Popen([str(part) for part in commands[name]], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(address))
                out, errors = process.stdout.read(), process.stderr.read()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                if process.returncode or b"SWIFT42" not in out:
                    failures.append(f"{name}: exit status {process.returncode}: {errors.decode().strip()[-200:]}")
                    if len(failures) > MAY_FAIL:
                        raise NotMeasured("; ".join(failures))
                    continue
                # What a client that has failed has cost says nothing.
                while (figures := says("cpu_us"))["pid"] != process.pid:
                    pass
                figures["whole_us"] = 1e6 * (usage.ru_utime + usage.ru_stime)
                figures["all_switches"] = usage.ru_nvcsw + usage.ru_nivcsw
                if number > 0:
                    found[name].append(figures)
    for failure in failures:
        print(f"\npeers: a join failed, and is not counted: {failure}")
    return found


def hosts(paths):
    commands = {
        "nearby": [paths.nearby, "host", "--app-id", APP, "--adapter", "hci0", "--json", "--payload",
                   "roomCode=SWIFT42"],
        "dbus-fast": [paths.python, LAB / "lab" / "peers" / "alone.py", "host", "dbus-fast", "hci0"],
        "C": [paths.c / "bare_host", "hci0"],
        "C, following": [paths.c / "bare_host", "hci0", "follow"],
    }
    found = {name: {"first": [], "handoffs": [], "idle": []} for name in commands}
    for number in range(BLOCKS):
        for turn in range(len(commands)):
            name = list(commands)[(number + turn) % len(commands)]
            with played(paths, "host", HANDOFFS + 1) as (address, says), \
                    child(commands[name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env=environment(address)) as host:
                wait_for_line(host, "serving")
                found[name]["idle"].append(says("idle")["idle"])
                # What a process does for the first time is another matter.
                found[name]["first"].append(says("gap_us"))
                found[name]["handoffs"] += [says("gap_us") for _ in range(HANDOFFS)]
                time.sleep(0.1)
    return found


def ratio(ours, theirs):
    """The ratio of the medians, with those of the quartiles the wrong way round: what noise could make of it."""
    a, b = statistics.quantiles(ours), statistics.quantiles(theirs)
    return a[1] / b[1], f"{a[0] / b[2]:.2f}..{a[2] / b[0]:.2f}"


def rows_of(found, figures):
    rows = []
    for label, digits, values in figures:
        for name in found:
            median, span = spread(values(found[name]), digits)
            rows.append([f"{label}: {name}", median, span, len(values(found[name]))])
    return rows


def asked(label, key, ours, theirs):
    value, span = ratio(ours, theirs)
    return [label, f"{value:.2f}", span, len(ours), *verdict(key, value)]


def measure(paths):
    joined, served = clients(paths), hosts(paths)

    def of(key, scale=1.0):
        return lambda runs: [run[key] / scale for run in runs]

    table(
        f"peers: a client, {ROUNDS} joins each in turn, BlueZ played",
        ["figure", "median", "range", "n"],
        rows_of(joined, [
            ("CPU scan to disconnect, ms", 2, of("cpu_us", 1000)), ("CPU of the process, ms", 1, of("whole_us", 1000)),
            ("peak RSS, MB (10^6 bytes)", 1, of("peak_kb", 1000 / 1.024)), ("switches", 0, of("all_switches")),
            ("D-Bus calls to BlueZ", 0, lambda runs: [len(run["calls"]) for run in runs]),
        ]),
    )
    table(
        f"peers: a host, {BLOCKS} processes with {HANDOFFS} handoffs each after the first, in turn, BlueZ played",
        ["figure", "median", "range", "n"],
        rows_of(served, [
            ("write to notification, us", 0, lambda run: of("gap_us")(run["handoffs"])),
            ("CPU a handoff, us", 0, lambda run: of("cpu_us")(run["handoffs"])),
            ("CPU of the first one, us", 0, lambda run: of("cpu_us")(run["first"])),
            ("voluntary switches", 0, lambda run: of("voluntary")(run["handoffs"])),
            ("idle RSS, MB (10^6 bytes)", 1, lambda run: of("rss_kb", 1000 / 1.024)(run["idle"])),
        ]),
    )
    cpu, memory = of("cpu_us"), of("peak_kb")
    rows = []
    for name in ("nearby", "C"):
        for other in ("bleak", "SimpleBLE") if "SimpleBLE" in joined else ("bleak",):
            rows.append(asked(f"client's CPU, scan to disconnect: {name} / {other}", "peers.client.cpu",
                              cpu(joined[name]), cpu(joined[other])))
        if "SimpleBLE" in joined:
            rows.append(asked(f"client's peak RSS: {name} / SimpleBLE", "peers.client.rss", memory(joined[name]),
                              memory(joined["SimpleBLE"])))
    for name in ("nearby", "C", "C, following"):
        ours, theirs = served[name]["handoffs"], served["dbus-fast"]["handoffs"]
        rows.append(asked(f"host, write to notification: {name} / dbus-fast", "peers.host.gap", of("gap_us")(ours),
                          of("gap_us")(theirs)))
        rows.append(asked(f"host, CPU a handoff: {name} / dbus-fast", "peers.host.cpu", cpu(ours), cpu(theirs)))
    table("peers: what is asked, as ratios of medians (range: of the quartiles, crosswise)",
          ["figure", "ratio", "range", "n", "target", ""], rows)
    print("  BlueZ is played message for message (measure/played_bluez.py): 22 messages a handoff reach `nearby host` and\n"
          "  `C, following`, 7 the others; both C programs answer without a look at the request: no host can be cheaper")
