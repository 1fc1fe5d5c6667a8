# SPDX-License-Identifier: MIT
"""What the guest's kernel says about itself."""
import os
import re

# At a message's beginning: of a program that crashes the kernel says "traps: NAME[PID] general protection fault ip:…".
# And a lockup is an emulated processor that was not given its time.
FAILURE = re.compile(
    r"BUG: (?!soft lockup|workqueue lockup)|kernel BUG at |Oops: |;general protection fault|Unable to handle kernel"
)
PLACE = re.compile(r"RIP: 0010:(\S+)")


class KernelLog:
    """Reads on from where it was opened. A kernel that has failed in one task goes on, but not reliably: what the task held
    stays locked, and a list that is corrupt fails again."""

    def __init__(self):
        self._file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self._file, 0, os.SEEK_END)
        self._failed = False

    def failure(self):
        """Where it has failed since this was opened, or None."""
        while True:
            try:
                line = os.read(self._file, 8192).decode(errors="replace")
            except BlockingIOError:
                return self._failed or None
            except BrokenPipeError:
                continue  # overwritten before it was read; the next read goes on behind that
            if FAILURE.search(line):
                self._failed = self._failed or "an unnamed place"
            elif self._failed == "an unnamed place" and (place := PLACE.search(line)):
                self._failed = place[1]
