# SPDX-License-Identifier: MIT
"""What `nearby host` does while nobody is near."""

import pathlib
import subprocess
import time

from .common import NotMeasured, child, private_bus, spread, table, verdict

SECONDS = 30
SETTLING = 5
RUNS = 3


def switches(process):
    """Voluntary context switches of each thread so far, by (name, id)."""
    counts = {}
    for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        try:
            status = (task / "status").read_text()
        except OSError:
            continue  # it has ended meanwhile, such as one that looked a name up as the process began
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        counts[fields["Name"].strip(), task.name] = int(fields["voluntary_ctxt_switches"])
    return counts


def peak_rss(process):
    """VmHWM in MB (10^6 bytes)."""
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise NotMeasured("no VmHWM")


def one_run(paths):
    """Switches of (nearby host, the bare program, the one on the global executor), the host's threads', all three's peak RSS."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with private_bus() as address, \
            child([paths.nearby, "simulate", "--bus", address], **quiet) as simulator:
        time.sleep(1)
        with child([paths.nearby, "host", "--bus", address, "--app-id", "com.example.idle", "--payload", "room=1"],
                   **quiet) as host, \
                child([paths.swift / "EmptyAsync", "bare"], **quiet) as bare, \
                child([paths.swift / "EmptyAsync", "executor"], **quiet) as executor:
            processes = [host, bare, executor]
            time.sleep(SETTLING)
            before = [switches(process) for process in processes]
            time.sleep(SECONDS)
            if any(process.poll() is not None for process in [*processes, simulator]):
                raise NotMeasured("a process ended while it should have been idle")
            after = [switches(process) for process in processes]
            deltas = [
                {thread: count - start.get(thread, 0) for thread, count in end.items()}
                for start, end in zip(before, after)
            ]
            return [sum(delta.values()) for delta in deltas], deltas[0], [peak_rss(process) for process in processes]


def measure(paths):
    runs = [one_run(paths) for _ in range(RUNS)]
    rows = []
    names = ["nearby host", "empty async program, suspended", "empty async program, in Task.sleep"]
    for number, name in enumerate(names):
        rows.append([name + f": switches in {SECONDS} s", *spread([run[0][number] for run in runs], 0), RUNS, "", ""])
    ours = [run[0][0] - run[0][2] for run in runs]
    median, span = spread(ours, 0)
    rows.append(["nearby host less the one in Task.sleep", median, span, RUNS, *verdict("idle.switches", float(median))])
    for number, name in enumerate(names):
        rss = [run[2][number] for run in runs]
        judged = verdict("idle.rss_mb", max(rss)) if number == 0 else ("", "")
        rows.append([name + ": peak RSS, MB (10^6 bytes)", *spread(rss, 1), RUNS, *judged])
    table("idle: nearby host on a private bus with nearby simulate, nobody near",
          ["figure", "median", "range", "n", "target", ""], rows)
    print("  nearby host, last run, by thread: "
          + ", ".join(f"{thread[0]} {count}" for thread, count in runs[-1][1].items()))
