# SPDX-License-Identifier: MIT
"""The daemons of the guest, each started, killed and started again at a case's will."""
import asyncio
import os
import shutil
import signal

SYSTEM_BUS_SOCKET = "/run/dbus/system_bus_socket"


class Daemon:
    def __init__(self, arguments, log):
        self.arguments = arguments
        self.log = log
        self.process = None

    @property
    def running(self):
        return self.process is not None and self.process.returncode is None

    async def start(self, *more):
        with open(self.log, "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.arguments, *more, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )

    async def end(self, how=signal.SIGKILL):
        if self.running:
            self.process.send_signal(how)
        if self.process is not None:
            await self.process.wait()

    def log_size(self):
        return os.path.getsize(self.log) if os.path.exists(self.log) else 0


class BusDaemon(Daemon):
    def __init__(self, log):
        super().__init__(["dbus-daemon", "--system", "--nofork", "--nopidfile", "--nosyslog"], log)

    async def start(self, *more):
        if os.path.exists(SYSTEM_BUS_SOCKET):
            os.unlink(SYSTEM_BUS_SOCKET)
        await super().start(*more)
        while not os.path.exists(SYSTEM_BUS_SOCKET):
            await asyncio.sleep(0.02)


class BluetoothDaemon(Daemon):
    """bluetoothd of this system, or of another release's root file system."""

    #: Most cases want a quick advertising interval, which is experimental before BlueZ 5.77. From then on there is no
    #: need for it, and it does harm: with -E, two adapters of 5.87 probe each other's audio services, want to pair for
    #: that, and take the link down (host/bleak, nearby/both-ends).
    USUAL = ("-E",) if tuple(map(int, os.environ.get("LAB_BLUEZ", "0").split("."))) < (5, 77) else ()

    def __init__(self, log, configuration):
        root = os.environ.get("LAB_ROOT", "")
        path = os.environ.get("LAB_DAEMON") or "/usr/libexec/bluetooth/bluetoothd"
        if root:
            shutil.copy(configuration, root + "/run/lab.conf")
            arguments = ["chroot", root, path, "-n", "-f", "/run/lab.conf"]
        else:
            arguments = [path, "-n", "-f", configuration]
        super().__init__(arguments, log)
        self.options = self.USUAL
        self.crashes = []  # exit statuses that no case asked for
        self._crash = asyncio.Event()
        self._wanted = False
        self._watch = None

    async def start(self, *more):
        await super().start(*self.options, *more)
        self._wanted = True
        self._watch = asyncio.ensure_future(self._start_again())

    async def end(self, how=signal.SIGKILL):
        self._wanted = False
        await super().end(how)

    def ends_with_the_bus(self):
        """What follows is no crash."""
        self._wanted = False

    async def crashed(self, limit):
        """Whether it has in this case, or does within the limit: a call fails of it before its end is seen."""
        if self.crashes:
            return True
        self._crash.clear()
        try:
            await asyncio.wait_for(self._crash.wait(), limit)
        except asyncio.TimeoutError:
            return False
        return True

    async def _start_again(self):
        """After a crash, as systemd does where the next call activates the service."""
        process = self.process
        status = await process.wait()
        if self._wanted and self.process is process:
            self.crashes.append(status)
            self._crash.set()
            await asyncio.sleep(1)
            if self._wanted and self.process is process:
                await self.start()
