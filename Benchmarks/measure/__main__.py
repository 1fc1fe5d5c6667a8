# SPDX-License-Identifier: MIT
"""`python3 -m measure NAME… `, called by run.sh once everything is built."""

import argparse
import importlib
import os
import pathlib
import platform
import subprocess
import sys

from .common import NotMeasured


def facts():
    """What a reader has to know of the machine."""
    hypervisor = any("hypervisor" in line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                     if line.startswith("flags"))
    kind = "virtual machine" if hypervisor else "no hypervisor"
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, Linux {platform.release()}, {platform.machine()}, {kind}; load at start {load:.1f}"


def main():
    parser = argparse.ArgumentParser(prog="measure")
    parser.add_argument("--c", type=pathlib.Path, required=True)
    parser.add_argument("--swift", type=pathlib.Path, required=True)
    parser.add_argument("--nearby", type=pathlib.Path, required=True)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    print(facts())
    failed = False
    for name in arguments.names:
        try:
            importlib.import_module(f".{name}", __package__).measure(arguments)
        except (NotMeasured, OSError, subprocess.SubprocessError, ValueError) as error:
            print(f"\n{name}: not measured: {error}", file=sys.stderr)
            failed = True
        sys.stdout.flush()
    return 1 if failed else 0


sys.exit(main())
