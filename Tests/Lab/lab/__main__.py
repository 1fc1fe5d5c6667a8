# SPDX-License-Identifier: MIT
"""python -m lab run|list|serve|cost|speed: the guest's side of scripts/lab.sh."""
import argparse
import asyncio
import importlib
import logging
import os
import sys

from . import cases


def part(text):
    number, of = map(int, text.split("/"))
    if not 1 <= number <= of:
        raise ValueError(text)
    return number, of


def arguments():
    parser = argparse.ArgumentParser(prog="lab")
    parser.add_argument("do", choices=("run", "list", "serve", "cost", "speed"))
    parser.add_argument("--filter", action="append", default=[])
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--subject", choices=cases.SUBJECTS, default="nearby")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--retries", type=int, default=0)
    parser.add_argument("--part", type=part, default=(1, 1), help="I/N: this guest's share of the cases")
    return parser.parse_args()


async def serve(options, folder):
    from .control import ControlChannel
    from .lab import Lab
    from .runner import Runner

    lab = Lab(folder, options.subject)
    await lab.start()
    channel = await ControlChannel(lab).open()
    if options.do == "serve":
        await channel.serve_forever()
    with open("/proc/uptime", encoding="utf-8") as file:
        print(f"ready after {file.read().split('.')[0]} s", flush=True)
    if options.do in ("cost", "speed"):
        failures = await importlib.import_module(f".{options.do}", __package__).run(lab, options.count, options.filter)
        with open(os.path.join(folder, "summary"), "w", encoding="utf-8") as file:
            file.write(f"{int(not failures)} {failures} 0 0\n")
        return 1 if failures else 0
    runner = Runner(lab, options.trace, options.retries)
    chosen = list(cases.chosen(options.filter, options.core))
    # Dealt in turn, what may take longest first, so that each guest has as much to do; run and numbered as in the whole.
    number, of = options.part
    share = sorted(sorted(range(len(chosen)), key=lambda each: -chosen[each].timeout)[number - 1::of])
    await runner.run([(each + 1, chosen[each]) for each in share] * options.repeat)
    return 1 if runner.failed else 0


def main():
    options = arguments()
    cases.load()
    if options.do == "list":
        for case in cases.chosen(options.filter, options.core):
            print(f"{case.name:44} {'core' if case.core else '    '} {case.about} {' '.join(case.bugs)}".rstrip())
        return 0
    # Quiet: the peers' libraries log as errors what the cases provoke on purpose (a link that is gone, a refusal).
    logging.basicConfig(level=os.environ.get("LAB_LOG", "CRITICAL"), format="lab: %(name)s: %(message)s")
    return asyncio.run(serve(options, "/run/job"))


if __name__ == "__main__":
    sys.exit(main())
