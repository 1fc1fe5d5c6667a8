# SPDX-License-Identifier: MIT
"""What the measurements (cost.py, speed.py) have in common: the programs that they start, and what failed."""
import asyncio
import os
import sys

HERE = os.path.dirname(__file__)
ALONE = os.path.join(HERE, "peers", "alone.py")


def python(*arguments):
    return [sys.executable, "-S", *arguments]


class Measurement:
    def __init__(self, lab):
        self.lab = lab
        self.failures = 0

    def failed(self, name, why):
        """The others' figures still count."""
        self.failures += 1
        print(f"lab: {name}: {why}", flush=True)

    async def spawn(self, command, **environment):
        return await asyncio.create_subprocess_exec(
            *command, env={**os.environ, "PYTHONPATH": ":".join(sys.path), **environment},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=1 << 20)

    async def spawn_host(self, command, **environment):
        """Returns once it serves, and has done what it still does then."""
        process = await self.spawn(command, **environment)
        while b"serving" not in (line := await asyncio.wait_for(process.stdout.readline(), self.lab.seconds(60))):
            if not line:
                errors = (await process.stderr.read()).decode(errors="replace").strip().splitlines()
                raise RuntimeError(f"{command[0]} does not start: {errors[-1:]}")
        # What it says from now on is not read; it is little.
        await asyncio.sleep(1.5)
        return process
