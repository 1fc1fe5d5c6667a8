# SPDX-License-Identifier: MIT
"""The size of the stripped release binary, and what it costs to start."""

import os
import pathlib
import resource
import subprocess
import tempfile

from .common import NotMeasured, spread, table, verdict

RUNS = 20


def cpu_time(command):
    """User and system time of one run, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
        raise NotMeasured(f"{command}: failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * ((after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime))


def measure(paths):
    with tempfile.TemporaryDirectory() as directory:
        stripped = pathlib.Path(directory) / "nearby"
        subprocess.run(["strip", "-o", stripped, paths.nearby], check=True)
        size = os.path.getsize(stripped) / 1e6
        cpu_time([stripped, "--version"])
        # Interleaved with a program that does nothing, for what starting any process costs here.
        times, others = [], []
        for _ in range(RUNS):
            times.append(cpu_time([stripped, "--version"]))
            others.append(cpu_time(["true"]))
    median, span = spread(times)
    base, base_span = spread(others)
    table(
        "binary: release, static Swift standard library, stripped",
        ["figure", "median", "range", "n", "target", ""],
        [
            ["size of nearby, MB (10^6 bytes)", f"{size:.2f}", "", 1, *verdict("binary.size_mb", size)],
            ["nearby --version, user+sys ms", median, span, RUNS, *verdict("binary.version_ms", float(median))],
            ["true, user+sys ms (for comparison)", base, base_span, RUNS, "", ""],
        ],
    )
