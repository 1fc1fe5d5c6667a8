# SPDX-License-Identifier: MIT
"""The contract that the simulators keep (Tests/ContractSuite, Tests/HandoffSuite), over BlueZ's room and the real stack.

Each case is one process of Tests/LabContract, whose hands are the control channel. The cases are the binary's own.
"""
import asyncio
import os
import re
import subprocess

from lab.cases import LeftOut, case

BINARY = os.environ.get("LAB_CONTRACT", "")
LEFT_OUT = 3


class Process:
    """For a failure's evidence."""

    def __init__(self, name):
        self.name = name
        self.output = b""

    def record(self):
        return f"LabContract run {self.name!r}\n" + self.output.decode(errors="replace")


def register(suite, title, needs):
    slug = re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")

    # Two minutes and more are the time after which bluetoothd forgets a device that it hears no more.
    @case(f"{suite}/{slug}", timeout=200)
    async def _(lab):
        environment = {**os.environ, "LAB_PATIENCE": str(lab.patience)}
        if suite == "bridged":
            environment["LAB_BRIDGED"] = "1"
        if "secondCentral" in needs:
            environment["LAB_SECOND"] = await lab.another_adapter()
        record = Process(title)
        lab.evidence.append(record)
        process = await asyncio.create_subprocess_exec(
            BINARY, "run", title, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )

        async def end():
            if process.returncode is None:
                process.kill()
                await process.wait()

        lab.at_end(end)
        while chunk := await process.stdout.read(65536):
            record.output = (record.output + chunk)[-65536:]
        status = await process.wait()
        text = record.output.decode(errors="replace").strip()
        if status == LEFT_OUT:
            raise LeftOut(text)
        assert status == 0, f"exit {status}: {text}"
        if text:
            lab.note(text)


if BINARY:
    for line in subprocess.run([BINARY, "list"], check=True, capture_output=True, text=True).stdout.splitlines():
        suite, title, needs = line.split("\t")
        register(suite, title, needs.split(","))
