# SPDX-License-Identifier: MIT
"""python -m lab run|serve|cost|speed: the guest's side of scripts/lab.sh. list and lay are for lab.sh itself."""
import argparse
import asyncio
import importlib
import logging
import os
import signal
import sys
import time

from . import cases
from .deal import Deal, lay

#: The exit status that asks lab.sh for another boot.
BOOT_AGAIN = 75


class Clocks:
    """The guest's clock beside that of the machine, which dates the files of the folder that both see."""

    def __init__(self, folder):
        self._path = os.path.join(folder, "clock")
        self._began = self._both()

    def _both(self):
        with open(self._path, "w", encoding="utf-8") as file:
            file.write("now")
        return time.monotonic(), os.stat(self._path).st_mtime

    def ratio(self):
        """How fast the guest's runs since this was made, by the machine's."""
        here, there = (after - before for after, before in zip(self._both(), self._began))
        return here / there if there > 0 else 0


def counts(text):
    passed, failed, skipped, retried = map(int, text.split(","))
    return passed, failed, skipped, retried


def arguments():
    parser = argparse.ArgumentParser(prog="lab")
    parser.add_argument("do", choices=("run", "list", "lay", "serve", "cost", "speed"))
    parser.add_argument("--filter", action="append", default=[])
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--subject", choices=cases.SUBJECTS, default="nearby")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--retries", type=int, default=0)
    parser.add_argument("--deal", default="/run/deal", help="the folder of the cases that are left")
    parser.add_argument("--guest", default="guest", help="this one's name there")
    parser.add_argument("--in-order", action="store_true")
    parser.add_argument("--so-far", type=counts, default=(0, 0, 0, 0), help="P,F,S,R: what this guest's earlier boots have seen")
    return parser.parse_args()


async def serve(options, folder):
    from .control import ControlChannel
    from .lab import Lab
    from .runner import GuestFailed, Runner

    lab = Lab(folder, options.subject)
    clocks = Clocks(folder)
    await lab.start()
    channel = await ControlChannel(lab).open()
    if options.do == "serve":
        await channel.serve_forever()
    with open("/proc/uptime", encoding="utf-8") as file:
        print(f"ready after {file.read().split('.')[0]} s", flush=True)
    if not 0.7 < (speed := clocks.ratio()) < 1.4:
        print(f"lab: this guest's clock runs {speed:.2f} times as fast as the machine's", flush=True)
        os._exit(BOOT_AGAIN)
    if options.do in ("cost", "speed"):
        failures = await importlib.import_module(f".{options.do}", __package__).run(lab, options.count, options.filter)
        with open(os.path.join(folder, "summary"), "w", encoding="utf-8") as file:
            file.write(f"{int(not failures)} {failures} 0 0\n")
        return 1 if failures else 0
    deal = Deal(options.deal, options.guest, options.in_order)
    runner = Runner(lab, options.trace, options.retries, options.so_far)
    try:
        await runner.run(list(cases.chosen(options.filter, options.core)), deal)
    except GuestFailed:
        # Without an end to anything: what a failed kernel holds cannot be ended.
        sys.stdout.flush()
        os._exit(BOOT_AGAIN)
    return 1 if runner.failed else 0


def main():
    options = arguments()
    cases.load()
    if options.do == "list":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # its reader may have seen enough
        for case in cases.chosen(options.filter, options.core):
            print(f"{case.name:44} {'core' if case.core else '    '} {case.about} {' '.join(case.bugs)}".rstrip())
        return 0
    if options.do == "lay":
        chosen = list(cases.chosen(options.filter, options.core))
        lay(options.deal, chosen, options.repeat)
        print(len(chosen) * options.repeat)
        return 0
    # Quiet: the peers' libraries log as errors what the cases provoke on purpose (a link that is gone, a refusal).
    logging.basicConfig(level=os.environ["LAB_LOG"], format="lab: %(name)s: %(message)s")
    return asyncio.run(serve(options, "/run/job"))


if __name__ == "__main__":
    sys.exit(main())
