# SPDX-License-Identifier: MIT
"""Runs a program on a terminal of its own and types passcodes at its prompts.

Usage: typed_passcode.py PASSCODE,PASSCODE… PROGRAM ARGUMENT…

Prints the exit status, and "shown" if a passcode was to be seen on the terminal. Standard library only.
"""

import os
import pty
import select
import sys
import time

PROMPT = b"Passcode: "


def main() -> None:
    passcodes = sys.argv[1].encode().split(b",")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.argv[2], sys.argv[2:])
    seen, answered, deadline = b"", 0, time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # Linux: the other end is closed
            break
        if not chunk:
            break
        seen += chunk
        if seen.count(PROMPT) > answered and answered < len(passcodes):
            os.write(terminal, passcodes[answered] + b"\n")
            answered += 1
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    if any(passcode in seen for passcode in passcodes):
        print("shown", flush=True)


main()
