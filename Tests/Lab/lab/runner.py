# SPDX-License-Identifier: MIT
"""Runs the cases, one line each, and keeps what is needed to understand a failure."""
import asyncio
import contextlib
import os
import time
import traceback

from .cases import LeftOut

LOG_LIMIT = 256 * 1024


class GuestFailed(Exception):
    """Another boot has to go on."""


def _source_line(error):
    """What a bare assert says."""
    return f"not so: {traceback.extract_tb(error.__traceback__)[-1].line}"


class Runner:
    def __init__(self, lab, trace=False, retries=0, so_far=(0, 0, 0, 0)):
        self.lab = lab
        self.trace = trace
        self.retries = retries
        self.passed, self.failed, self.skipped, self.retried = so_far
        self._is_lost = False

    async def run(self, cases, deal):
        """What it is dealt. The counts so far are written with each verdict, since the kernel may die in what follows.

        Raises GuestFailed after a case that the guest has not got over."""
        self._write_counts("so-far")
        while (number := deal.take()) is not None:
            case = cases[number - 1]
            if self.lab.subject in case.subjects:
                await self._run(number, case, deal)
            else:
                self.skipped += 1
                self._judged(deal)
        self._write_counts("summary")

    async def _run(self, number, case, deal):
        for left in reversed(range(self.retries + 1)):
            is_judged = await self._run_one(number, case, left, deal)
            if self.lab.kernel.failure() or self._is_lost:
                # What has no verdict stays in this guest's hand, and lab.sh puts it back.
                raise GuestFailed
            if is_judged:
                return

    def _judged(self, deal):
        self._write_counts("so-far")
        deal.judged()

    def _write_counts(self, name):
        with open(os.path.join(self.lab.folder, name), "w", encoding="utf-8") as file:
            file.write(f"{self.passed} {self.failed} {self.skipped} {self.retried}\n")

    async def _run_one(self, number, case, retries, deal):
        """Whether that was the last word on it."""
        lab = self.lab
        lab.recorder.clear()
        lab.notes = []
        logs = [(daemon.log, daemon.log_size()) for daemon in (lab.bluetoothd, lab.bus_daemon)]
        began = time.monotonic()
        lab.bluetoothd.crashes.clear()
        left_out, again = None, False
        try:
            problem = await self._outcome(case)
        except LeftOut as reason:
            problem, left_out = None, reason
        if lab.bluetoothd.crashes:
            lab.note(f"bluetoothd crashed, exit status {', '.join(map(str, lab.bluetoothd.crashes))}")
        kernel = lab.kernel.failure()
        if kernel:
            lab.note(f"the kernel failed in {kernel}")
        took = time.monotonic() - began
        if problem or kernel or lab.bluetoothd.crashes or self.trace:
            self._keep(case, problem, logs)
        notes = f" ({'; '.join(lab.notes)})" if lab.notes else ""
        if left_out is not None:
            self.skipped += 1
            print(f"skip {number} {case.name}: {left_out}", flush=True)
        elif problem:
            # With a kernel that has failed it is no verdict.
            again = kernel is not None or retries > 0
            self.retried += again
            self.failed += not again
            first = problem[0].strip().splitlines()[0] if problem[0].strip() else "failed"
            verdict = "again" if again else "not ok"
            print(f"{verdict} {number} {case.name} … {took:.1f} s: {first}{notes}", flush=True)
        else:
            self.passed += 1
            print(f"ok {number} {case.name} … {took:.1f} s{notes}", flush=True)
        # Before the clean-up, which the kernel may not live through.
        if again:
            self._write_counts("so-far")
        else:
            self._judged(deal)
        if not kernel:
            await self._clean(case, logs)
            if problem and not self._is_lost and not lab.kernel.failure():
                # A controller that the kernel has lost track of looks clean: once its six cases failed, one after
                # another, since no `LE Create Connection` came any more after bluetoothd had been killed beside one.
                await self._reset()
        return not again

    async def _clean(self, case, logs):
        """The next case shall have a working guest."""
        lab = self.lab
        try:
            await asyncio.wait_for(lab.clean(), lab.seconds(40))
        except Exception as error:
            if not lab.kernel.failure():
                state = "runs" if lab.bluetoothd.running else f"has ended with {lab.bluetoothd.process.returncode}"
                print(f"lab: clean-up after {case.name}: {error!r}; bluetoothd {state}", flush=True)
                self._keep(case, None, logs)
                await self._reset()
        if kernel := lab.kernel.failure():
            print(f"lab: the kernel failed in {kernel} while {case.name} was cleaned up", flush=True)

    async def _reset(self):
        try:
            await asyncio.wait_for(self.lab.reset(), self.lab.seconds(60))
        except Exception as error:
            print(f"lab: the guest has to boot again: {error!r}", flush=True)
            self._is_lost = True

    async def _outcome(self, case):
        """None, or (what went wrong, the traceback)."""
        # A task of its own: a peer's library may cancel whoever waits for it, and that shall not be the runner.
        running = asyncio.ensure_future(case.run(self.lab))
        done, _ = await asyncio.wait([running], timeout=self.lab.seconds(case.timeout))
        if not done:
            stack = "".join(traceback.format_list(traceback.StackSummary.extract(
                (frame, frame.f_lineno) for frame in running.get_stack()
            )))
            running.cancel()
            await asyncio.wait([running], timeout=10)
            return f"did not end within {self.lab.seconds(case.timeout):.0f} s", stack
        try:
            running.result()
        except LeftOut:
            raise
        except asyncio.CancelledError:
            return "a peer's request was cancelled: its link is gone", traceback.format_exc()
        except AssertionError as error:
            return str(error) or _source_line(error), traceback.format_exc()
        except Exception as error:
            return f"{type(error).__name__}: {error}", traceback.format_exc()
        return None

    def _keep(self, case, problem, logs):
        name = case.name.replace("/", "--")
        # What is run again writes its own.
        while os.path.exists(folder := os.path.join(self.lab.folder, "evidence", name)) and problem:
            name += "-again"
        os.makedirs(folder, exist_ok=True)

        def write(name, text):
            with open(os.path.join(folder, name), "w", encoding="utf-8", errors="replace") as file:
                file.write(text)

        if problem:
            write("failure.txt", f"{problem[0]}\n\n{problem[1]}")
        for number, each in enumerate(self.lab.evidence):
            write(f"nearby-{number}.txt", each.record())
        for path, start in logs:
            with contextlib.suppress(OSError), open(path, "rb") as file:
                file.seek(start)
                write(os.path.basename(path), file.read()[-LOG_LIMIT:].decode(errors="replace"))
        adapters = self.lab.recorder.write(os.path.join(folder, "hci.btsnoop"))
        write("adapters.txt", "".join(f"hci_mon.adapter_id {number}: {name}\n" for number, name in enumerate(adapters)))
