# SPDX-License-Identifier: MIT
"""The lab that a case is given: radio, adapters, daemons, peers, and the clean-up after it."""
import asyncio
import logging
import os
import sys

from .adapters import Adapter
from .bluez import BlueZ, BusError
from .daemons import BluetoothDaemon, BusDaemon
from .kernel import KernelLog
from .radio import DEFAULT_RSSI, LATENCY, Medium, Recorder

log = logging.getLogger("lab")
ADDRESSES = ("F0:F1:F2:F3:F4:00", "F0:F1:F2:F3:F4:01")


class Lab:
    def __init__(self, folder, subject="nearby"):
        self.folder = folder
        self.subject = subject
        self.patience = float(os.environ.get("LAB_PATIENCE", "1"))
        self.bluez_version = tuple(int(part) for part in os.environ.get("LAB_BLUEZ", "0").split("."))
        self.recorder = Recorder()
        self.medium = Medium()
        self.adapters = [Adapter(self.medium, address, self.recorder) for address in ADDRESSES]
        self.peers = []
        self.evidence = []
        self.notes = []
        self.bluez = BlueZ()
        self.kernel = KernelLog()
        self.bus_daemon = BusDaemon(os.path.join(folder, "dbus-daemon.log"))
        self.bluetoothd = BluetoothDaemon(
            os.path.join(folder, "bluetoothd.log"), os.path.join(os.path.dirname(__file__), "..", "boot", "main.conf")
        )
        self._at_end = []

    def seconds(self, limit):
        """A time limit, as long as this machine needs it to be."""
        return limit * self.patience

    async def until(self, true, what, limit=20):
        """Waits for what nothing tells of: asks every 50 ms whether it is so."""
        deadline = asyncio.get_running_loop().time() + self.seconds(limit)
        while not true():
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"{what} not within {limit} s")
            await asyncio.sleep(0.05)

    def note(self, text):
        """A line for the reader, kept with the case's result."""
        self.notes.append(text)

    # The guest

    async def start(self):
        await self.bus_daemon.start()
        for adapter in self.adapters:
            await adapter.plug()
        await self.start_bluetoothd()

    @property
    def names(self):
        return [adapter.name for adapter in self.adapters if adapter.plugged]

    def adapter(self, name):
        return next(adapter for adapter in self.adapters if adapter.name == name)

    async def start_bluetoothd(self, options=BluetoothDaemon.USUAL):
        self.bluetoothd.options = options
        await self.bluetoothd.start()
        await self.bluez.wait_powered(self.names, self.seconds(40))

    async def restart_bluetoothd(self, pause=1.0, options=BluetoothDaemon.USUAL):
        """Killed, so that it tells nobody; back after the pause."""
        await self.bluetoothd.end()
        await asyncio.sleep(pause)
        await self.start_bluetoothd(options)

    async def once_more(self, ask, name):
        """bluetoothd 5.66 crashes now and then when it loses a link or an application in mid-exchange, and comes back with
        power on that adapter: then it is asked once more."""
        try:
            return await ask()
        except BusError:
            if not await self.bluetoothd.crashed(self.seconds(2)):
                raise
            await self.bluez.wait_powered([name], self.seconds(30))
            return await ask()

    async def power(self, name, on):
        await self.once_more(lambda: self.bluez.set_powered(name, on), name)

    async def cycle_power(self, name, pause=1.0):
        await self.power(name, False)
        await asyncio.sleep(pause)
        await self.power(name, True)
        await self.bluez.wait_powered([name], self.seconds(30))

    async def replug(self, name, pause=1.0):
        adapter = self.adapter(name)
        adapter.unplug()
        await asyncio.sleep(pause)
        await adapter.plug()
        await self.bluez.wait_powered([adapter.name], self.seconds(30))

    async def another_adapter(self):
        """A third one, until the case's end."""
        adapter = Adapter(self.medium, "F0:F1:F2:F3:F4:02", self.recorder)
        self.adapters.append(adapter)

        async def gone():
            # bluetoothd remembers the devices of an adapter that is pulled out.
            try:
                await self.bluez.forget_devices()
            finally:
                adapter.unplug()
                self.adapters.remove(adapter)

        self.at_end(gone)
        await adapter.plug()
        await self.bluez.wait_powered([adapter.name], self.seconds(30))
        return adapter.name

    async def restart_bus(self, pause=1.0):
        """The bus daemon ends; bluetoothd ends with it, as it does everywhere, and both come back."""
        self.bluetoothd.ends_with_the_bus()
        await self.bus_daemon.end()
        self.bluez.forget_bus()
        try:
            await asyncio.wait_for(self.bluetoothd.process.wait(), self.seconds(10))
        except asyncio.TimeoutError:
            await self.bluetoothd.end()
        await asyncio.sleep(pause)
        await self.bus_daemon.start()
        await self.start_bluetoothd()

    # The two roles under test

    def host(self, **options):
        from . import nearby

        return (nearby.NearbyHost if self.subject == "nearby" else nearby.ReferenceHost)(self, **options)

    def join(self, **options):
        from . import nearby

        return (nearby.NearbyJoin if self.subject == "nearby" else nearby.ReferenceJoin)(self, **options)

    async def advertisements_left(self, name, limit=2):
        """How many bluetoothd still counts, once it has had the time to notice that their owners are gone."""
        deadline = asyncio.get_running_loop().time() + self.seconds(limit)
        while (left := await self.bluez.active_instances(name)) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
        return left

    # After a case

    def at_end(self, action):
        self._at_end.append(action)

    async def clean(self):
        """Whatever a case leaves, the next one does not see it."""
        for action in reversed(self._at_end):
            try:
                result = action()
                if asyncio.iscoroutine(result):
                    await asyncio.wait_for(result, self.seconds(10))
            except Exception as error:  # a peer that is broken by the case's own fault
                log.info("clean-up: %r", error)
        self._at_end.clear()
        for peer in self.peers:
            await peer.close()
        self.peers.clear()
        self.evidence.clear()
        self.medium.silent.clear()
        self.medium.hidden.clear()
        self.medium.latency = LATENCY
        if not self.bus_daemon.running:
            self.bluez.forget_bus()
            await self.bluetoothd.end()
            await self.bus_daemon.start()
        for adapter in self.adapters:
            if not adapter.plugged:
                await adapter.plug()
            adapter.controller.rssi = DEFAULT_RSSI
            adapter.controller.drop_duplicates = False
        if not self.bluetoothd.running or self.bluetoothd.options != self.bluetoothd.USUAL:
            await self.bluetoothd.end()
            await self.start_bluetoothd()
        for name in set(self.names) - await self.bluez.powered():
            try:
                await self.bluez.set_powered(name, True)
            except BusError:
                pass  # not there yet, or being powered: the wait below decides
        await self.bluez.wait_powered(self.names, self.seconds(30))
        if any([await self.advertisements_left(name) for name in self.names]):
            await self.restart_bluetoothd()
        for adapter in self.adapters:
            # A set that the kernel has lost sight of stays on the air for good.
            adapter.controller.stop_advertising()
        await self.bluez.forget_devices()

    async def reset(self):
        """Where clean() has not worked."""
        print("lab: the guest's daemons are started anew", file=sys.stderr)
        await self.bluetoothd.end()
        for adapter in self.adapters:
            adapter.unplug()
        await self.bus_daemon.end()
        self.bluez.forget_bus()
        await self.bus_daemon.start()
        for adapter in self.adapters:
            await adapter.plug()
        await self.start_bluetoothd()
